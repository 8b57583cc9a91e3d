// What this file is for: each way of a link is measured for itself, and transfers that share it count their shares.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/link_meter.hpp"

#include <gtest/gtest.h>

namespace {

using troupe::detail::link_meter;
using troupe::detail::runtime_clock;

struct link_meter_test : testing::Test {
  std::uint64_t now = 1'000;
  runtime_clock clock{[this] { return now; }};
  link_meter meter{clock};
};

TEST_F(link_meter_test, measures_each_way_for_itself) {
  const double out = meter.begin_out();
  now += 100;
  const double home = meter.begin_home();
  now += 50;
  EXPECT_FLOAT_EQ(meter.end_home(home), 50);
  EXPECT_FLOAT_EQ(meter.end_out(out), 150);
}

TEST_F(link_meter_test, shares_time_among_transfers_of_one_way) {
  const double a = meter.begin_out(), b = meter.begin_out();
  now += 100;
  EXPECT_FLOAT_EQ(meter.end_out(a), 50);
  now += 10;
  EXPECT_FLOAT_EQ(meter.end_out(b), 60);
}

TEST_F(link_meter_test, is_idle_when_nothing_is_under_way_either_way) {
  EXPECT_TRUE(meter.is_idle());
  const double out = meter.begin_out();
  EXPECT_FALSE(meter.is_idle());
  const double home = meter.begin_home();
  meter.end_out(out);
  EXPECT_FALSE(meter.is_idle());
  meter.end_home(home);
  EXPECT_TRUE(meter.is_idle());
}

TEST_F(link_meter_test, forgets_transfers_of_the_node_before) {
  meter.begin_out();
  meter.begin_home();
  meter.clear();
  EXPECT_TRUE(meter.is_idle());
}

}  // namespace
