// What this file is for: side turns begin when several threads submit much, and end when too much needs the turn.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/side_policy.hpp"

#include <gtest/gtest.h>

namespace {

using troupe::detail::side_policy;

// Returns the number of fetches, of so much mail from so many lanes, until side turns are to begin; 0: not in 100,000.
int fetches_until_begun(side_policy& p, std::size_t tasks, std::size_t lanes) {
  for (int n = 1; n <= 100'000; ++n)
    if (p.is_to_begin(tasks, lanes)) return n;
  return 0;
}
// Returns whether they are to stop after so many turns, with so many tasks ordered aside for each.
bool stops(side_policy& p, std::uint64_t& aside, std::uint64_t for_each_turn) {
  bool any = false;
  for (std::uint64_t i = 0; i < side_policy::turns_counted; ++i) {
    any = p.is_to_stop(aside) || any;
    aside += for_each_turn;
  }
  return any;
}

TEST(side_policy, begins_once_enough_was_fetched_from_several_lanes) {
  side_policy p;
  EXPECT_EQ(fetches_until_begun(p, 64, 2), static_cast<int>(side_policy::begin_after / 64));
}

TEST(side_policy, does_not_begin_for_one_thread) {
  side_policy p;
  EXPECT_EQ(fetches_until_begun(p, 1'000, 1), 0);
}

TEST(side_policy, does_not_begin_for_threads_that_wait_for_each_task) {
  side_policy p;
  EXPECT_EQ(fetches_until_begun(p, 3, 2), 0);
}

TEST(side_policy, does_not_begin_where_two_threads_meet_now_and_then) {
  side_policy p;
  bool begun = false;
  for (int i = 0; i < 10'000; ++i) {
    begun = begun || p.is_to_begin(200, 2);
    for (int k = 0; k < 3; ++k) begun = begun || p.is_to_begin(200, 1);
  }
  EXPECT_FALSE(begun);
}

TEST(side_policy, goes_on_while_many_tasks_are_ordered_aside_for_each_turn) {
  side_policy p;
  std::uint64_t aside = 0;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(stops(p, aside, 2 * side_policy::worth_a_turn));
}

TEST(side_policy, stops_where_turns_are_needed_all_the_time_and_is_more_patient_each_time) {
  side_policy p;
  std::uint64_t aside = 0;
  int before = fetches_until_begun(p, 64, 2);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(stops(p, aside, side_policy::worth_a_turn / 2));
    const int now = fetches_until_begun(p, 64, 2);
    EXPECT_EQ(now, 2 * before);
    before = now;
  }
  EXPECT_FALSE(stops(p, aside, 2 * side_policy::worth_a_turn));
  EXPECT_TRUE(stops(p, aside, 0));
  EXPECT_EQ(fetches_until_begun(p, 64, 2), 2 * static_cast<int>(side_policy::begin_after / 64)) << "it was worth it";
}

TEST(side_policy, that_insists_never_stops) {
  side_policy p;
  std::uint64_t aside = 0;
  p.insist();
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(stops(p, aside, 0));
}

}  // namespace
