// What this file is for: checks the shares of a link against what each transfer would have taken alone.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/link_time.hpp"

#include <gtest/gtest.h>

namespace {

using troupe::logic::link_time;

TEST(link_time, of_one_that_is_alone_is_all_of_its_time) {
  link_time s;
  const double a = s.begin(1000);
  EXPECT_EQ(s.end(1300, a), 300);
  const double b = s.begin(5000);  // nobody is charged for the time between
  EXPECT_EQ(s.end(5100, b), 100);
}

TEST(link_time, of_two_that_take_turns_is_half_of_the_time) {
  link_time s;
  const double a = s.begin(0), b = s.begin(0);
  EXPECT_EQ(s.end(400, a), 200);
  EXPECT_EQ(s.end(400, b), 200);
}

TEST(link_time, of_many_that_wait_for_each_other_is_on_the_average_what_each_took) {
  link_time s;
  constexpr int count = 8;
  double begun[count], sum = 0;
  for (double& b : begun) b = s.begin(0);
  for (int i = 0; i < count; ++i) sum += s.end(static_cast<std::uint64_t>(100 * (i + 1)), begun[i]);
  EXPECT_DOUBLE_EQ(sum / count, 100);
}

TEST(link_time, of_one_that_comes_later_begins_then) {
  link_time s;
  const double a = s.begin(0);
  const double b = s.begin(100);
  EXPECT_EQ(s.end(300, a), 100 + 200 / 2);
  EXPECT_EQ(s.end(350, b), 200 / 2 + 50);
}

TEST(link_time, does_not_go_back_with_a_clock_that_does) {
  link_time s;
  const double a = s.begin(1000);
  const double b = s.begin(900);
  EXPECT_GE(s.end(950, b), 0);
  EXPECT_GE(s.end(1100, a), 0);
}

}  // namespace
