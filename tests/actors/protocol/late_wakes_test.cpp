// What this file is for: a thread that has a turn wakes others once it has left it, and wakes all of them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/protocol/late_wakes.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "actors/protocol/bell.hpp"
#include "actors/protocol/destruction.hpp"

namespace {

using troupe::detail::bell;
using troupe::detail::late_wakes;

/// Threads each of which sleeps on a condition of its own until all are told to go.
class sleepers {
 public:
  explicit sleepers(std::size_t n) : conditions_(n) {
    for (std::condition_variable& c : conditions_)
      threads_.emplace_back([this, &c] {
        std::unique_lock hold(lock_);
        ++asleep_;
        c.wait(hold, [&] { return go_; });
        --asleep_;
      });
    while (asleep() != n) std::this_thread::yield();
  }
  /// Changes what they wait for, and wakes them.
  void wake() {
    {
      std::lock_guard hold(lock_);
      go_ = true;
    }
    for (std::condition_variable& c : conditions_) late_wakes::wake(c);
  }
  std::size_t asleep() {
    std::lock_guard hold(lock_);
    return asleep_;
  }
  void join() { threads_.clear(); }

 private:
  std::mutex lock_;
  bool go_ = false;
  std::size_t asleep_ = 0;
  std::deque<std::condition_variable> conditions_;
  std::vector<std::jthread> threads_;  // last: they use the others
};

/// Gives other threads much opportunity to run.
void yield_often() {
  for (int i = 0; i < 2'000; ++i) std::this_thread::yield();
}

TEST(late_wakes, are_made_at_once_where_there_is_no_turn) {
  sleepers some(2);
  some.wake();
  some.join();
  EXPECT_EQ(some.asleep(), 0U);
}

TEST(late_wakes, come_when_the_turn_has_been_left) {
  for (const std::size_t n : {1U, 3U, 40U}) {  // more than have a place
    sleepers some(n);
    late_wakes turn;
    turn.begin();
    some.wake();
    EXPECT_EQ(turn.size(), n);
    yield_often();
    EXPECT_EQ(some.asleep(), n);
    late_wakes::due due = turn.end();
    EXPECT_EQ(turn.size(), 0U) << "the next turn begins with none";
    EXPECT_EQ(due.size(), n);
    due.wake();
    some.join();
  }
}

TEST(late_wakes, of_the_same_sleeper_are_one) {
  std::condition_variable c;
  late_wakes turn;
  turn.begin();
  for (int i = 0; i < 10; ++i) late_wakes::wake(c);
  EXPECT_EQ(turn.end().size(), 1U);
}

TEST(late_wakes, wait_for_the_outer_of_two_turns) {
  sleepers some(1);
  late_wakes outer, inner;
  outer.begin();
  inner.begin();
  some.wake();
  EXPECT_EQ(inner.size(), 1U);
  inner.end().wake();
  EXPECT_EQ(outer.size(), 1U);
  yield_often();
  EXPECT_EQ(some.asleep(), 1U);
  outer.end().wake();
  some.join();
}

// Captures of tasks are destroyed in a turn, and their destructors may wait for others.
TEST(late_wakes, wait_for_no_turn_while_objects_of_callers_are_destroyed) {
  sleepers before(1), meanwhile(1), after(1);
  late_wakes outer, turn;
  outer.begin();
  before.wake();
  turn.begin();
  {
    const troupe::detail::destruction here;
    before.join();
    meanwhile.wake();
    meanwhile.join();
  }
  after.wake();
  EXPECT_EQ(turn.size(), 1U);
  turn.end().wake();
  outer.end().wake();
  after.join();
}

TEST(late_wakes, are_not_left_to_a_turn_that_is_gone) {
  {
    late_wakes turn;
    turn.begin();
  }
  sleepers some(1);
  some.wake();
  some.join();
}

TEST(late_wakes, of_a_bell_are_those_of_its_ring_but_not_of_one_that_the_caller_waits_for) {
  for (const bool waits : {false, true}) {
    bell b;
    std::jthread sleeper([&] { b.sleep_unless([] { return false; }); });
    while (!b.has_sleeper()) std::this_thread::yield();
    { const bell::held hold = b.hold(); }  // it has begun to wait
    late_wakes turn;
    turn.begin();
    if (waits) {
      b.ring_now();
      sleeper.join();
      EXPECT_EQ(turn.size(), 0U);
      continue;
    }
    b.ring();
    yield_often();
    EXPECT_TRUE(b.has_sleeper());
    turn.end().wake();
    sleeper.join();
    EXPECT_FALSE(b.has_sleeper());
  }
}

}  // namespace
