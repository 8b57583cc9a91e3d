// What this file is for: one alarm serves all points in time that are asked for.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <vector>

#include "actors/placement/alarm.hpp"

namespace {

using std::chrono::milliseconds;

// A tick is a microsecond.
constexpr double ns_per_tick = 1'000;

struct alarm_test : testing::Test {
  alarm_test() {
    alarm.use([this](milliseconds after) { set.push_back(after); });
  }
  void ring_at(std::uint64_t due, std::uint64_t now = 0) { alarm.ring_at(due, now, ns_per_tick); }
  troupe::detail::alarm alarm;
  std::vector<milliseconds> set;
};

TEST_F(alarm_test, rings_not_before_the_time_that_was_asked_for) {
  ring_at(7'500, 2'000);
  EXPECT_EQ(set, std::vector<milliseconds>{milliseconds(6)});
}

TEST_F(alarm_test, is_set_again_for_an_earlier_time_only) {
  ring_at(10'000);
  ring_at(10'000);
  ring_at(20'000);
  ring_at(5'000);
  EXPECT_EQ(set, (std::vector<milliseconds>{milliseconds(11), milliseconds(6)}));
}

TEST_F(alarm_test, is_set_for_a_later_time_when_it_has_rung) {
  ring_at(10'000);
  alarm.rang();
  ring_at(20'000, 10'000);
  EXPECT_EQ(set, (std::vector<milliseconds>{milliseconds(11), milliseconds(11)}));
}

TEST_F(alarm_test, rings_at_once_for_what_is_over) {
  ring_at(1'000, 50'000);
  EXPECT_EQ(set, std::vector<milliseconds>{milliseconds(1)});
}

TEST_F(alarm_test, does_not_ring_for_no_time) {
  ring_at(0);
  EXPECT_TRUE(set.empty());
}

TEST_F(alarm_test, rings_now_whatever_it_is_set_for) {
  ring_at(10'000);
  alarm.ring_now();
  EXPECT_EQ(set, (std::vector<milliseconds>{milliseconds(11), milliseconds(0)}));
}

TEST_F(alarm_test, rings_soon_and_later_once_for_all_that_ask_until_it_has_rung) {
  for (int i = 0; i < 3; ++i) alarm.ring_later();
  for (int i = 0; i < 3; ++i) alarm.ring_soon();
  EXPECT_EQ(set, (std::vector<milliseconds>{milliseconds(20), milliseconds(1)}));
  alarm.rang();
  alarm.ring_soon();
  alarm.ring_later();
  EXPECT_EQ(set, (std::vector<milliseconds>{milliseconds(20), milliseconds(1), milliseconds(1), milliseconds(20)}));
}

TEST(alarm, that_nobody_sets_never_rings) {
  troupe::detail::alarm a;
  a.ring_at(10, 0, 1);
  a.ring_now();
  int rung = 0;
  a.use([&](milliseconds) { ++rung; });
  a.ring_at(20, 0, 1);  // the time before was not kept
  EXPECT_EQ(rung, 1);
}

}  // namespace
