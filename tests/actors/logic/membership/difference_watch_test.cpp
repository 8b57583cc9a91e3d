// What this file is for: nodes that differ tell each other everything, but not with every heartbeat.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "actors/logic/membership/difference_watch.hpp"

namespace {

using troupe::logic::difference_watch;
using namespace std::chrono_literals;
using time_point = difference_watch::time_point;

constexpr time_point start{1h};

TEST(difference_watch, is_due_in_a_mesh_when_a_peer_has_differed_for_a_while) {
  difference_watch w;
  time_point differs{};
  EXPECT_FALSE(w.is_due(false, differs, start));
  EXPECT_EQ(differs, start);
  EXPECT_FALSE(w.is_due(false, differs, start + 499ms));
  EXPECT_TRUE(w.is_due(false, differs, start + 500ms));
  EXPECT_EQ(differs, start + 500ms);
  EXPECT_FALSE(w.is_due(false, differs, start + 999ms));
  EXPECT_TRUE(w.is_due(false, differs, start + 1000ms));
}

TEST(difference_watch, begins_anew_when_the_peer_is_the_same_again) {
  difference_watch w;
  time_point differs{};
  w.is_due(false, differs, start);
  EXPECT_FALSE(w.is_due(true, differs, start + 400ms));
  EXPECT_EQ(differs, time_point{});
  EXPECT_FALSE(w.is_due(false, differs, start + 600ms));
  EXPECT_FALSE(w.is_due(false, differs, start + 1000ms));
  EXPECT_TRUE(w.is_due(false, differs, start + 1100ms));
}

TEST(difference_watch, tells_one_peer_at_a_time) {
  difference_watch w;
  time_point one{}, two{};
  w.is_due(false, one, start), w.is_due(false, two, start);
  EXPECT_TRUE(w.is_due(false, one, start + 600ms));
  EXPECT_FALSE(w.is_due(false, two, start + 600ms));
  EXPECT_TRUE(w.is_due(false, two, start + 1100ms));
}

TEST(difference_watch, asks_who_knows_more_twice_a_second_at_most) {
  difference_watch w;
  EXPECT_TRUE(w.may_ask(start));
  EXPECT_FALSE(w.may_ask(start + 499ms));
  EXPECT_TRUE(w.may_ask(start + 500ms));
}

TEST(difference_watch, is_due_beyond_a_mesh_when_most_peers_differ) {
  difference_watch w;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(w.is_due_beyond(false, start)) << i;
  EXPECT_TRUE(w.is_due_beyond(false, start));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(w.is_due_beyond(false, start + 3s)) << "it counts from the beginning";
  for (int i = 0; i < 25; ++i) w.is_due_beyond(true, start + 3s);  // each makes up for four
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(w.is_due_beyond(false, start + 3s)) << i;
  EXPECT_TRUE(w.is_due_beyond(false, start + 3s));
}

TEST(difference_watch, waits_two_seconds_beyond_a_mesh) {
  difference_watch w;
  ASSERT_TRUE(w.may_ask(start));
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(w.is_due_beyond(false, start + 1999ms)) << i;
  EXPECT_TRUE(w.is_due_beyond(false, start + 2000ms));
}

}  // namespace
