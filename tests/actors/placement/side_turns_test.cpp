// What this file is for: side turns are excluded by the turn, and an array is ordered on by one side or by turns.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/side_turns.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "actors/placement/turns.hpp"

namespace {

using namespace troupe::detail;

struct side_turns_test : testing::Test {
  void begin() {
    t.take();
    t.aside().want(++fetch);
    t.aside().note_handled(fetch);
    t.leave();
  }
  void handle(std::uint64_t of) {
    t.take();
    t.aside().note_handled(of);
    t.leave();
  }
  bool try_take(std::size_t side) { return t.aside().try_take(side, told); }
  bool has(std::size_t side) {
    if (!try_take(side)) throw std::logic_error("the side turn is held");
    const bool it_has = t.aside().has(side, a);
    EXPECT_FALSE(t.aside().leave(side));
    return it_has;
  }
  task_record& using_array() {
    record.accesses = record.own_accesses.data();
    record.accesses[0].array = &a;
    record.access_count = 1;
    return record;
  }

  turns t{100};
  std::uint64_t fetch = 0;  // the last one
  bool told = false;
  array_core a;
  task_record record;
};

TEST_F(side_turns_test, are_not_there_unless_they_are_wanted) {
  EXPECT_FALSE(t.aside().are_wanted());
  EXPECT_FALSE(try_take(0));
  begin();
  EXPECT_TRUE(t.aside().are_wanted());
  ASSERT_TRUE(try_take(0));
  EXPECT_FALSE(t.aside().leave(0));
  t.take();
  t.aside().stop();
  t.leave();
  EXPECT_FALSE(t.aside().are_wanted());
  EXPECT_FALSE(try_take(0));
}

TEST_F(side_turns_test, begin_when_the_mail_from_before_has_been_handled) {
  t.take();
  t.aside().want(5);
  t.leave();
  EXPECT_TRUE(t.aside().are_wanted());
  EXPECT_FALSE(try_take(0)) << "what was posted before may not be in order yet";
  handle(4);
  EXPECT_FALSE(try_take(0));
  handle(5);
  ASSERT_TRUE(try_take(0));
  EXPECT_FALSE(t.aside().leave(0));
}

TEST_F(side_turns_test, are_had_by_several_sides_at_once_and_by_one_thread_of_each) {
  begin();
  ASSERT_TRUE(try_take(0));
  ASSERT_TRUE(try_take(1));
  EXPECT_FALSE(try_take(1)) << "another thread of that side has it";
  EXPECT_FALSE(t.aside().leave(0));
  ASSERT_TRUE(try_take(0));
  EXPECT_FALSE(t.aside().leave(0));
  EXPECT_FALSE(t.aside().leave(1));
}

TEST_F(side_turns_test, are_not_taken_while_the_turn_is_held) {
  begin();
  t.take();
  EXPECT_FALSE(try_take(0));
  t.leave();
  ASSERT_TRUE(try_take(0));
  EXPECT_FALSE(t.aside().leave(0));
}

// A thread that submits while turns are long would wait for each of its tasks.
TEST_F(side_turns_test, are_waited_for_again_after_twice_as_many_tasks) {
  side_turns& aside = t.aside();
  const auto unwaited = [&] {
    std::size_t n = 0;
    for (; !aside.is_to_wait(0); ++n) EXPECT_TRUE(aside.is_to_wait(1)) << "sides wait for themselves";
    return n;
  };
  EXPECT_EQ(unwaited(), 0u);
  std::vector<std::size_t> in_vain;
  for (int i = 0; i < 14; ++i) {
    aside.note_waited(0, true);
    in_vain.push_back(unwaited());
  }
  EXPECT_EQ(in_vain, (std::vector<std::size_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1'024, 2'048, 4'096, 4'096}));
  for (int i = 0; i < 11; ++i) aside.note_waited(0, false);
  EXPECT_EQ(unwaited(), 0u);
  aside.note_waited(0, true);
  EXPECT_EQ(unwaited(), 2u) << "each wait that was not in vain halves it";
}

TEST_F(side_turns_test, do_not_get_an_array_until_the_mail_that_it_is_in_has_been_handled) {
  begin();
  const task_record& r = using_array();
  EXPECT_FALSE(t.aside().is_for_turn(r));
  EXPECT_TRUE(has(0));
  EXPECT_FALSE(t.aside().is_for_turn(r));
  t.aside().note_posted(r, fetch + 2);
  EXPECT_TRUE(t.aside().is_for_turn(r));
  EXPECT_FALSE(has(0));
  handle(fetch + 1);
  EXPECT_TRUE(t.aside().is_for_turn(r));
  EXPECT_FALSE(has(0));
  handle(fetch + 2);
  EXPECT_FALSE(t.aside().is_for_turn(r));
  EXPECT_TRUE(has(1)) << "it is the first that wants it";
  EXPECT_FALSE(has(0));
}

TEST_F(side_turns_test, give_an_array_to_the_first_that_wants_it) {
  begin();
  ASSERT_TRUE(try_take(0));
  ASSERT_TRUE(try_take(1));
  EXPECT_TRUE(t.aside().has(1, a));
  EXPECT_TRUE(t.aside().has(1, a));
  EXPECT_FALSE(t.aside().has(0, a));
  EXPECT_FALSE(t.aside().leave(0));
  EXPECT_FALSE(t.aside().leave(1));
}

TEST_F(side_turns_test, lose_an_array_to_a_task_that_is_posted_meanwhile) {
  begin();
  ASSERT_TRUE(try_take(1));
  EXPECT_TRUE(t.aside().has(1, a));
  t.aside().note_posted(using_array(), fetch + 1);
  EXPECT_FALSE(t.aside().has(1, a));
  EXPECT_FALSE(t.aside().leave(1));
}

TEST_F(side_turns_test, keep_an_array_when_they_end_and_begin_again) {
  begin();
  EXPECT_TRUE(has(1));
  t.take();
  t.aside().stop();
  t.leave();
  begin();
  EXPECT_FALSE(has(0));
  EXPECT_TRUE(has(1));
}

TEST_F(side_turns_test, tell_when_those_are_over_that_were_held) {
  begin();
  turns::held none, one;
  t.note_held(none);
  EXPECT_TRUE(t.is_over(none));
  ASSERT_TRUE(try_take(3));
  EXPECT_TRUE(t.is_over(none)) << "it was not held then";
  t.note_held(one);
  EXPECT_FALSE(t.is_over(one));
  EXPECT_FALSE(t.aside().leave(3));
  EXPECT_TRUE(t.is_over(one));
  ASSERT_TRUE(try_take(3));
  EXPECT_TRUE(t.is_over(one)) << "it is another one";
  EXPECT_FALSE(t.aside().leave(3));
}

TEST_F(side_turns_test, tell_those_who_leave_that_somebody_waits) {
  begin();
  ASSERT_TRUE(try_take(3));
  turns::held held;
  t.note_held(held);
  EXPECT_FALSE(t.is_over_or_ask(held));
  EXPECT_TRUE(t.aside().leave(3));
  EXPECT_TRUE(t.is_over_or_ask(held));
  ASSERT_TRUE(try_take(3));
  EXPECT_FALSE(t.aside().leave(3)) << "once";
}

// Sides count on what is theirs; turns add all up, and begin generations.
TEST_F(side_turns_test, and_turns_exclude_each_other) {
  constexpr int threads = 4, rounds = 20'000;
  begin();
  struct alignas(64) count {
    int n = 0;
  };
  std::vector<count> mine(threads);
  int in_turns = 0;
  std::atomic<int> wrong{0}, running{threads};
  std::latch start(threads + 1);
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      start.arrive_and_wait();
      for (int k = 0; k < rounds; ++k) {
        bool asked = false;
        if (!t.aside().try_take(i, asked)) {
          t.take();
          ++in_turns;
          t.leave();
          continue;
        }
        ++mine[i].n;
        if (t.aside().leave(i)) ++wrong;
      }
      --running;
    });
  start.arrive_and_wait();
  int last = 0;
  while (running.load() != 0) {
    t.take();
    int sum = 0;
    for (const count& c : mine) sum += c.n;
    if (sum < last) ++wrong;
    last = sum;
    if (sum % 3 == 0) {
      t.aside().stop();
      t.aside().want(++fetch);
      t.aside().note_handled(fetch);
    }
    t.leave();
    std::this_thread::yield();
  }
  for (std::thread& th : all) th.join();
  int sum = in_turns;
  for (const count& c : mine) sum += c.n;
  EXPECT_EQ(sum, threads * rounds);
  EXPECT_EQ(wrong, 0);
}

// An array is counted on by whoever may order tasks on it: no count is lost. A thread's own come in its order.
TEST_F(side_turns_test, hand_arrays_from_one_to_the_other_without_a_race) {
  constexpr std::size_t threads = 3;
  constexpr int rounds = 20'000;
  begin();
  struct order {
    std::size_t thread;
    int number;
  };
  int on_array = 0, wrong = 0;
  std::array<int, threads> last{};
  const auto count = [&](const order& o) {
    ++on_array;
    if (o.number != ++last[o.thread]) ++wrong;
  };
  spin_lock posting;
  std::vector<order> mail;  // with the lock
  std::atomic<std::uint64_t> fetches{fetch};
  std::atomic<int> aside{0};
  using_array();
  std::latch start(threads);
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      start.arrive_and_wait();
      for (int k = 1; k <= rounds; ++k) {
        bool asked = false, has = false;
        if (t.aside().try_take(i, asked)) {
          has = t.aside().has(i, a);
          if (has) {
            count({i, k});
            ++aside;
          }
          (void)t.aside().leave(i);
        }
        if (has) continue;
        {
          const std::lock_guard hold(posting);
          t.aside().note_posted(record, fetches.load() + 1);
          mail.push_back({i, k});
        }
        if (k % 3 == 0) continue;  // others handle it
        t.take();
        ++fetches;
        std::vector<order> fetched;
        {
          const std::lock_guard hold(posting);
          fetched.swap(mail);
        }
        for (const order& o : fetched) count(o);
        t.aside().note_handled(fetches.load());
        t.leave();
      }
    });
  for (std::thread& th : all) th.join();
  for (const order& o : mail) count(o);
  EXPECT_EQ(on_array, static_cast<int>(threads) * rounds);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(aside.load(), 0);
}

}  // namespace
