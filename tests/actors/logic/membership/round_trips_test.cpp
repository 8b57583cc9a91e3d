// What this file is for: the median of what was measured last.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/membership/round_trips.hpp"

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using troupe::logic::round_trips;

TEST(round_trips, are_nothing_before_the_first) { EXPECT_EQ(round_trips().median(), 0ns); }

TEST(round_trips, one_that_took_long_changes_little) {
  round_trips r;
  for (const auto t : {80us, 90us, 70us}) r.add(t);
  EXPECT_EQ(r.median(), 80us);
  r.add(3s);
  EXPECT_EQ(r.median(), 80us);
  r.add(3s);
  EXPECT_EQ(r.median(), 90us);
}

TEST(round_trips, what_is_older_than_the_last_few_is_forgotten) {
  round_trips r;
  for (std::size_t i = 0; i < 100; ++i) r.add(1ms);
  for (std::size_t i = 0; i < round_trips::window / 2; ++i) r.add(2ms);
  EXPECT_EQ(r.median(), 1ms);
  r.add(2ms);
  EXPECT_EQ(r.median(), 2ms);
}

TEST(round_trips, the_shortest_is_of_the_last_ones) {
  round_trips r;
  EXPECT_EQ(r.least(), 0ns);
  r.add(3ms);
  r.add(2ms);
  r.add(9ms);
  EXPECT_EQ(r.least(), 2ms);
  for (std::size_t i = 0; i < round_trips::window; ++i) r.add(5ms);
  EXPECT_EQ(r.least(), 5ms);
}

}  // namespace
