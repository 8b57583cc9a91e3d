// What this file is for: tickets are recorded when somebody needs them, not before, and nobody waits for what is over.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/lanes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/actors/gpu/paper_accelerator.hpp"

namespace {

using namespace troupe::detail;

struct gpu_lanes_test : testing::Test {
  gpu_lanes_test() { lanes.use(&device, 4); }
  test::paper_accelerator device{4, 0};
  gpu_lanes lanes;
};

TEST_F(gpu_lanes_test, let_work_in_a_row_share_a_ticket) {
  const auto first = lanes.promise(2);
  EXPECT_EQ(lanes.promise(2), first);
  EXPECT_EQ(lanes.owed(2), 2);
  EXPECT_EQ(device.recorded(2), 0u) << "nobody needs it yet";
  lanes.keep_promises();
  EXPECT_EQ(device.recorded(2), first);
  EXPECT_EQ(lanes.owed(2), 0);
  EXPECT_EQ(device.recorded(3), 0u) << "nothing was promised there";
  EXPECT_GT(lanes.promise(2), first);
}

TEST_F(gpu_lanes_test, reach_a_ticket_when_the_device_says_so_and_somebody_has_looked) {
  const auto end = lanes.promise(2);
  lanes.keep_promise(2);
  EXPECT_TRUE(lanes.is_behind(2));
  device.finish_all();
  EXPECT_FALSE(lanes.has_reached(2, end));
  lanes.look(2);
  EXPECT_TRUE(lanes.has_reached(2, end));
  EXPECT_FALSE(lanes.is_behind(2));
}

TEST_F(gpu_lanes_test, record_a_promise_of_another_lane_before_they_wait_for_it) {
  const auto end = lanes.promise(lane_in);
  lanes.wait(2, lane_in, end);
  EXPECT_EQ(device.recorded(lane_in), end);
  EXPECT_EQ(device.waits, (std::vector<std::array<std::uint64_t, 3>>{{2, lane_in, end}}));
}

TEST_F(gpu_lanes_test, wait_neither_for_themselves_nor_for_what_is_over) {
  const auto end = lanes.promise(2);
  lanes.keep_promise(2);
  lanes.wait(2, 2, end);
  device.finish_all();
  lanes.look(2);
  lanes.wait(3, 2, end);
  EXPECT_TRUE(device.waits.empty());
}

TEST_F(gpu_lanes_test, ring_once_at_the_same_end) {
  (void)lanes.promise(2);
  lanes.ring_at_end(2);
  ASSERT_EQ(device.lane(2).notified.size(), 1u);
  EXPECT_EQ(device.lane(2).notified[0], 1u) << "the promise was kept by the ticket that rings";
  lanes.ring_at_end(2);
  EXPECT_EQ(device.lane(2).notified.size(), 1u);
  (void)lanes.promise(2);
  lanes.ring_at_end(2);
  EXPECT_EQ(device.lane(2).notified.size(), 2u);
}

TEST_F(gpu_lanes_test, go_on_from_where_a_routine_has_left_a_lane) {
  device.record(2, false);
  device.record(2, false);
  device.finish_all();
  lanes.note_used(2);
  EXPECT_TRUE(lanes.has_reached(2, 2));
  EXPECT_EQ(lanes.promise(2), 3u);
}

TEST_F(gpu_lanes_test, begin_where_another_device_stands) {
  (void)lanes.promise(2);
  test::paper_accelerator other(4, 0);
  other.record(2, false);
  lanes.use(&other, 4);
  EXPECT_EQ(lanes.owed(2), 0);
  EXPECT_EQ(lanes.promise(2), 2u);
  lanes.use(nullptr, 4);
  EXPECT_EQ(lanes.size(), 4);
}

}  // namespace
