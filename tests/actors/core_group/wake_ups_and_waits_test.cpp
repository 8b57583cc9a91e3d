// What this file is for: wake-ups that are owed are taken once; bodies that wait are summed up.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "actors/core_group/owed_wake_ups.hpp"
#include "actors/core_group/waiting_bodies.hpp"

namespace {

using namespace troupe::detail;

TEST(owed_wake_ups, are_taken_once) {
  owed_wake_ups owed;
  EXPECT_FALSE(owed.any());
  owed.add(2);
  owed.add(1);
  EXPECT_TRUE(owed.any());
  EXPECT_EQ(owed.take(), 3u);
  EXPECT_FALSE(owed.any());
  EXPECT_EQ(owed.take(), 0u);
}

TEST(owed_wake_ups, of_a_thread_near_by_are_one) {
  owed_wake_ups owed;
  owed.add_near();
  owed.add_near();
  EXPECT_TRUE(owed.any());
  EXPECT_EQ(owed.take(), 0u);
  EXPECT_TRUE(owed.take_near());
  EXPECT_FALSE(owed.take_near());
  EXPECT_FALSE(owed.any());
}

TEST(waiting_bodies, are_summed_up_until_they_go_on) {
  waiting_bodies waiting;
  const worker::standing one{1, 1000.0f, 0}, wide{3, 500.0f, 0};
  waiting.count(one, 1);
  waiting.count(wide, 1);
  EXPECT_EQ(waiting.load().slots, 4);
  EXPECT_FLOAT_EQ(waiting.load().ns, 1500.0f);
  waiting.count(one, -1);
  EXPECT_EQ(waiting.load().slots, 3);
  EXPECT_FLOAT_EQ(waiting.load().ns, 500.0f);
  waiting.count(wide, -1);
  EXPECT_EQ(waiting.load().slots, 0);
}

}  // namespace
