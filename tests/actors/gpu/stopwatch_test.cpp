// What this file is for: ticks become nanoseconds, and a task is over its limit when it has taken longer.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/stopwatch.hpp"

#include <gtest/gtest.h>

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using troupe::detail::gpu_stopwatch;

constexpr double microsecond = 1'000;  // of a tick

TEST(gpu_stopwatch, turns_ticks_into_nanoseconds_and_back) {
  const gpu_stopwatch w(nanoseconds(0), microsecond);
  EXPECT_DOUBLE_EQ(w.ns_of(0), 0.0);
  EXPECT_DOUBLE_EQ(w.ns_of(7), 7'000.0);
  EXPECT_EQ(w.ticks_of(nanoseconds(7'999)), 7u) << "a tick that has begun does not count";
  EXPECT_EQ(w.ticks_of(milliseconds(2)), 2'000u);
}

TEST(gpu_stopwatch, has_no_limit_where_none_is_set) {
  const gpu_stopwatch w(nanoseconds(0), microsecond);
  EXPECT_FALSE(w.has_limit());
  EXPECT_EQ(w.look_every(), nanoseconds(0));
}

TEST(gpu_stopwatch, finds_a_task_over_its_limit_when_it_has_taken_longer) {
  const gpu_stopwatch w(milliseconds(100), microsecond);
  EXPECT_TRUE(w.has_limit());
  EXPECT_EQ(w.limit(), milliseconds(100));
  EXPECT_FALSE(w.is_over_limit(5'000, 5'000));
  EXPECT_FALSE(w.is_over_limit(5'000, 105'000)) << "it may take all of it";
  EXPECT_TRUE(w.is_over_limit(5'000, 105'001));
}

TEST(gpu_stopwatch, has_somebody_look_several_times_within_the_limit) {
  EXPECT_EQ(gpu_stopwatch(milliseconds(100), microsecond).look_every(), milliseconds(25));
}

TEST(gpu_stopwatch, takes_a_limit_shorter_than_a_tick_for_none) {
  EXPECT_FALSE(gpu_stopwatch(nanoseconds(10), microsecond).has_limit());
}

}  // namespace
