// What this file is for: what a task took on its lane follows from when it was enqueued and what ended before it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/lane_clocks.hpp"

#include <gtest/gtest.h>

namespace {

using troupe::detail::lane_clocks;

TEST(lane_clocks, serve_a_task_from_when_it_was_enqueued_on_an_idle_lane) {
  lane_clocks c(3);
  c.begin_look();
  c.count(2);
  EXPECT_EQ(c.served(2, 100, 150), 100u);
}

TEST(lane_clocks, serve_a_task_from_the_end_of_the_one_before_it) {
  lane_clocks c(3);
  c.begin_look();
  c.count(2);
  c.end_look(150);
  c.begin_look();
  c.count(2);
  EXPECT_EQ(c.served(2, 110, 180), 150u);
  EXPECT_EQ(c.served(1, 110, 180), 110u) << "another lane";
}

TEST(lane_clocks, share_the_time_among_those_that_are_seen_to_have_ended_together) {
  lane_clocks c(1);
  c.begin_look();
  for (int i = 0; i < 4; ++i) c.count(0);
  EXPECT_EQ(c.served(0, 100, 180), 160u);
  c.end_look(180);
  c.begin_look();
  c.count(0);
  EXPECT_EQ(c.served(0, 100, 200), 180u) << "those of the look before do not count";
}

TEST(lane_clocks, begin_anew_with_a_new_device) {
  lane_clocks c(2);
  c.ended(1, 500);
  EXPECT_EQ(c.began(1, 100), 500u);
  c.reset();
  EXPECT_EQ(c.began(1, 100), 100u);
}

TEST(lane_clocks, know_whether_a_thread_was_looking) {
  lane_clocks c(1);
  EXPECT_TRUE(c.was_awake());
  c.sleep();
  EXPECT_FALSE(c.was_awake());
  EXPECT_TRUE(c.was_awake());
}

}  // namespace
