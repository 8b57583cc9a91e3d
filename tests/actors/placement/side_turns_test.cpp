// What this file is for: side turns are excluded by the turn, and an array is ordered on by one side or by turns.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/side_turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <thread>
#include <vector>

#include "actors/placement/turns.hpp"

namespace {

using namespace troupe::detail;

struct side_turns_test : testing::Test {
  void begin() {
    t.take();
    t.aside().renew();
    t.aside().note_handled();
    t.leave();
  }
  bool try_take(std::size_t side) { return t.aside().try_take(side, false, told); }
  task_record& using_array() {
    record.accesses = record.own_accesses.data();
    record.accesses[0].array = &a;
    record.access_count = 1;
    return record;
  }

  turns t{100};
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
  t.aside().renew();
  t.leave();
  EXPECT_TRUE(t.aside().are_wanted());
  EXPECT_FALSE(try_take(0)) << "what was posted before may not be in order yet";
  t.take();
  EXPECT_FALSE(t.aside().is_settled());
  t.aside().note_handled();
  t.leave();
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
TEST_F(side_turns_test, are_waited_for_in_vain_only_once) {
  begin();
  using clock = std::chrono::steady_clock;
  clock::duration first = clock::duration::max(), later = clock::duration::max();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(try_take(0));
    EXPECT_FALSE(t.aside().leave(0));
    t.take();
    const auto begun = clock::now();
    EXPECT_FALSE(try_take(0));
    const auto waited = clock::now();
    for (int k = 0; k < 8; ++k) EXPECT_FALSE(try_take(0));
    later = std::min(later, clock::now() - waited);
    first = std::min(first, waited - begun);
    t.leave();
  }
  EXPECT_LT(later, first) << "eight tries after the first";
}

TEST_F(side_turns_test, are_not_waited_for_where_an_array_is_for_the_turn) {
  begin();
  const task_record& r = using_array();
  EXPECT_FALSE(t.aside().is_for_turn(r));
  ASSERT_TRUE(try_take(0));
  EXPECT_TRUE(t.aside().has(0, a));
  EXPECT_FALSE(t.aside().leave(0));
  EXPECT_FALSE(t.aside().is_for_turn(r));
  t.aside().note_posted(r);
  EXPECT_TRUE(t.aside().is_for_turn(r));
  begin();
  EXPECT_FALSE(t.aside().is_for_turn(r));
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

TEST_F(side_turns_test, lose_an_array_to_a_task_that_is_posted_until_the_next_generation) {
  begin();
  ASSERT_TRUE(try_take(1));
  EXPECT_TRUE(t.aside().has(1, a));
  t.aside().note_posted(using_array());
  EXPECT_FALSE(t.aside().has(1, a));
  EXPECT_FALSE(t.aside().leave(1));
  t.take();
  t.leave();
  ASSERT_TRUE(try_take(1));
  EXPECT_FALSE(t.aside().has(1, a)) << "the same generation goes on";
  EXPECT_FALSE(t.aside().leave(1));
  begin();
  ASSERT_TRUE(try_take(0));
  EXPECT_TRUE(t.aside().has(0, a));
  EXPECT_FALSE(t.aside().leave(0));
}

TEST_F(side_turns_test, do_not_get_an_array_of_which_a_task_was_posted_while_they_were_closed) {
  begin();
  t.take();
  t.aside().note_posted(using_array());
  t.leave();
  ASSERT_TRUE(try_take(1));
  EXPECT_FALSE(t.aside().has(1, a));
  EXPECT_FALSE(t.aside().leave(1));
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
        if (!t.aside().try_take(i, false, asked)) {
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
      t.aside().renew();
      t.aside().note_handled();
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

// An array is counted on by whoever may order tasks on it: no count is lost.
TEST_F(side_turns_test, hand_arrays_from_one_to_the_other_without_a_race) {
  constexpr int threads = 3, rounds = 20'000;
  begin();
  int on_array = 0, posted_count = 0;  // the second with the turn
  spin_lock posting;
  std::atomic<int> aside{0};
  using_array();
  std::latch start(threads);
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      start.arrive_and_wait();
      for (int k = 0; k < rounds; ++k) {
        bool asked = false, has = false;
        if (t.aside().try_take(i, false, asked)) {
          has = t.aside().has(i, a);
          if (has) {
            ++on_array;
            ++aside;
          }
          (void)t.aside().leave(i);
        }
        if (has) continue;
        {
          const std::lock_guard hold(posting);
          t.aside().note_posted(record);
        }
        t.take();
        ++on_array;
        ++posted_count;
        if (posted_count % 4 == 0) {
          t.aside().renew();
          { const std::lock_guard hold(posting); }
          t.aside().note_handled();
        }
        t.leave();
      }
    });
  for (std::thread& th : all) th.join();
  EXPECT_EQ(on_array, threads * rounds);
  EXPECT_EQ(aside + posted_count, threads * rounds);
}

}  // namespace
