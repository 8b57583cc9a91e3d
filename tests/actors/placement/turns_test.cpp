// What this file is for: one thread at a time has the turn, and whether it is overdue is known to all.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "actors/placement/turns.hpp"
#include "actors/protocol/bell.hpp"

namespace {

using troupe::detail::bell;
using troupe::detail::turns;

TEST(turns, are_had_by_one_at_a_time) {
  turns t(100);
  EXPECT_TRUE(t.try_take());
  EXPECT_FALSE(t.try_take());
  t.leave();
  EXPECT_TRUE(t.try_take());
}

TEST(turns, exclude_threads_that_wait_for_them) {
  turns t(100);
  int guarded = 0;
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i)
    all.emplace_back([&] {
      for (int k = 0; k < 20'000; ++k) {
        t.take();
        ++guarded;
        t.leave();
      }
    });
  for (auto& th : all) th.join();
  EXPECT_EQ(guarded, 80'000);
}

TEST(turns, are_left_before_others_are_woken) {
  for (const bool tries : {false, true}) {
    turns t(100);
    bell b;
    std::atomic<bool> was_free{false};
    std::jthread sleeper([&] {
      b.sleep_unless([] { return false; });
      was_free = t.try_take();
      if (was_free) t.leave();
    });
    while (!b.has_sleeper()) std::this_thread::yield();
    { const bell::held hold = b.hold(); }  // it has begun to wait
    if (tries)
      ASSERT_TRUE(t.try_take());
    else
      t.take();
    b.ring();
    for (int i = 0; i < 2'000; ++i) std::this_thread::yield();
    t.leave();
    sleeper.join();
    EXPECT_TRUE(was_free);
  }
}

TEST(turns, are_stale_when_none_was_begun_for_a_while_and_none_is_held) {
  turns t(100);
  ASSERT_TRUE(t.try_take());
  t.begin(1'000);
  EXPECT_FALSE(t.is_stale(5'000)) << "it is held";
  t.leave();
  EXPECT_FALSE(t.is_stale(1'100));
  EXPECT_TRUE(t.is_stale(1'101));
}

// Of two kinds of turns that alternate, all take their part in the sample.
TEST(turns, know_for_how_long_they_were_held) {
  turns t(100);
  std::uint64_t now = 1'000, held = 0;
  for (int i = 0; i < 34'000; ++i) {
    const std::uint64_t takes = i % 2 == 0 ? 10 : 30;
    t.take();
    t.begin(now);
    now += takes;
    held += takes;
    if (t.is_timed(false)) t.end_timed(now, false);
    t.leave();
    now += 1'000;
  }
  EXPECT_EQ(t.held_ticks(), held);
}

// One long turn among many short ones is not taken for seventeen, nor for none.
TEST(turns, know_exactly_for_how_long_they_were_held_where_they_are_long) {
  for (int at = 0; at < 17; ++at) {
    turns t(100);
    std::uint64_t now = 1'000;
    for (int i = 0; i < 34; ++i) {
      const bool is_long = i == at;
      t.take();
      t.begin(now);
      now += is_long ? 1'000'000 : 10;
      if (t.is_timed(is_long)) t.end_timed(now, is_long);
      t.leave();
    }
    EXPECT_NEAR(static_cast<double>(t.held_ticks()), 1'000'330.0, 170.0) << at;
  }
}

TEST(turns, know_whether_they_were_overdue_and_how_many_there_were) {
  turns t(100);
  t.take();
  t.begin(1'000);
  EXPECT_TRUE(t.was_stale());
  t.begin(1'100);
  EXPECT_FALSE(t.was_stale());
  t.begin(1'201);
  EXPECT_TRUE(t.was_stale());
  EXPECT_EQ(t.count(), 3u);
}

TEST(turns, know_the_thread_that_began_the_last_one) {
  turns t(100);
  EXPECT_FALSE(t.this_thread_was_last());
  t.begin(1);
  EXPECT_TRUE(t.this_thread_was_last());
  std::thread([&] {
    EXPECT_FALSE(t.this_thread_was_last());
    t.begin(2);
    EXPECT_TRUE(t.this_thread_was_last());
  }).join();
  EXPECT_FALSE(t.this_thread_was_last());
}

TEST(turns, count_the_threads_that_are_active) {
  turns t(100);
  t.became_active();
  t.became_active();
  t.became_idle();
  EXPECT_EQ(t.active(), 1);
}

TEST(turns, are_over_for_those_who_changed_something_while_one_was_held) {
  turns t(100);
  const auto held_now = [&] {
    turns::held h;
    t.note_held(h);
    return h;
  };
  EXPECT_TRUE(t.is_over(held_now())) << "none is held";
  t.take();
  const turns::held then = held_now();
  EXPECT_FALSE(t.is_over(then));
  t.leave();
  EXPECT_TRUE(t.is_over(then));
  t.take();
  EXPECT_TRUE(t.is_over(then)) << "another one is held";
  EXPECT_FALSE(t.is_over(held_now()));
}

}  // namespace
