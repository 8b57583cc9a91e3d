// What this file is for: what a device has counted appears in its report, each number under its own name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/counters.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace {

using troupe::detail::gpu_counters;

TEST(gpu_counters, are_reported_each_under_its_name) {
  gpu_counters c;
  gpu_counters::add(c.tasks, 100);
  gpu_counters::add(c.failed, 2);
  gpu_counters::add(c.chained, 30);
  gpu_counters::add(c.by_waiters, 4);
  gpu_counters::add(c.replays, 5);
  gpu_counters::add(c.busy_ns, 6'000'000'000);
  gpu_counters::add(c.bytes, 7'000);
  troupe::executor_report r;
  c.report(r);
  EXPECT_EQ(r.tasks, 100u);
  EXPECT_EQ(r.failed, 2u);
  EXPECT_EQ(r.chained, 30u);
  EXPECT_EQ(r.launched_by_waiters, 4u);
  EXPECT_EQ(r.replays, 5u);
  EXPECT_EQ(r.busy, std::chrono::seconds(6));
  EXPECT_EQ(r.bytes_moved, 7'000u);
}

TEST(gpu_counters, add_up_and_leave_the_rest_of_a_report_alone) {
  gpu_counters c;
  for (int i = 0; i < 3; ++i) gpu_counters::add(c.tasks);
  gpu_counters::add(c.tasks, 4);
  troupe::executor_report r;
  r.name = "sim:0";
  r.queued = 9;
  r.bytes_out = 11;
  c.report(r);
  EXPECT_EQ(r.tasks, 7u);
  EXPECT_EQ(r.name, "sim:0");
  EXPECT_EQ(r.queued, 9u);
  EXPECT_EQ(r.bytes_out, 11u);
}

}  // namespace
