// What this file is for: which threads look for more before they sleep, and which do not.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/adaptive_spin.hpp"

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using troupe::net::adaptive_spin;
constexpr adaptive_spin::time_point start{1h};
constexpr auto soon = 1us;

/// Gives the core away, and somebody has it for `taken`.
bool goes_on(adaptive_spin& p, adaptive_spin::time_point& now, adaptive_spin::duration taken) {
  const auto before = now;
  now += taken;
  return p.goes_on(before, now);
}

TEST(adaptive_spin, lasts_as_long_as_it_is_said_to) {
  adaptive_spin p;
  auto now = start;
  ASSERT_TRUE(p.begin(now, 50us));
  int looks = 0;
  while (goes_on(p, now, soon)) ++looks;
  EXPECT_EQ(looks, 49);
  EXPECT_TRUE(p.begin(now, 50us)) << "nobody wanted the core";
}

TEST(adaptive_spin, begins_anew_with_what_it_finds) {
  adaptive_spin p;
  auto now = start;
  ASSERT_TRUE(p.begin(now, 50us));
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(goes_on(p, now, soon));
  ASSERT_TRUE(p.begin(now, 50us));
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(goes_on(p, now, soon));
}

TEST(adaptive_spin, is_none_without_a_time) {
  adaptive_spin p;
  EXPECT_FALSE(p.begin(start, 0ns));
}

TEST(adaptive_spin, ends_where_somebody_else_wants_the_core) {
  adaptive_spin p;
  auto now = start;
  ASSERT_TRUE(p.begin(now, 3 * adaptive_spin::somebody));
  EXPECT_TRUE(goes_on(p, now, adaptive_spin::somebody));
  EXPECT_FALSE(goes_on(p, now, adaptive_spin::somebody + 1ns));
  EXPECT_FALSE(p.begin(now + adaptive_spin::pause_min - 1ns, 50us));
  EXPECT_TRUE(p.begin(now + adaptive_spin::pause_min, 50us));
}

TEST(adaptive_spin, tries_less_and_less_often_where_cores_stay_busy) {
  adaptive_spin p;
  auto now = start;
  for (auto pause = adaptive_spin::pause_min; pause < adaptive_spin::pause_max; pause *= 2) {
    ASSERT_TRUE(p.begin(now, 50us));
    ASSERT_FALSE(goes_on(p, now, 3ms));
    ASSERT_FALSE(p.begin(now + pause - 1ns, 50us));
    now += pause;
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(p.begin(now, 50us));
    ASSERT_FALSE(goes_on(p, now, 3ms));
    now += adaptive_spin::pause_max;
  }
  ASSERT_TRUE(p.begin(now, 50us));
  while (goes_on(p, now, soon)) continue;  // nobody wants it any more
  ASSERT_TRUE(p.begin(now, 50us));
  ASSERT_FALSE(goes_on(p, now, 3ms));
  EXPECT_TRUE(p.begin(now + adaptive_spin::pause_min, 50us)) << "as short as the first time";
}

}  // namespace
