// What this file is for: how many lanes a parallel stage uses, and which of them is told of an item.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include <troupe/detail/streams/lanes.hpp>
#include <troupe/detail/streams/strand.hpp>

namespace {

using troupe::detail::streams::lane_scaling;
using troupe::detail::streams::strand;
using troupe::detail::streams::takers;

constexpr std::int64_t ms = 1'000'000;

// Items of that length, one after the other, each taken at once.
void run_quietly(lane_scaling& s, std::int64_t& now, std::int64_t until, double item_ns, std::int64_t each) {
  for (; now < until; now += each) {
    s.note(now, false, item_ns, 1, false);
    s.note(now, true, item_ns, 0, false);
  }
}

TEST(lane_scaling, uses_one_more_where_the_edge_is_full_up_to_the_most) {
  lane_scaling s(1, 3);
  EXPECT_EQ(s.active(), 1);
  s.note(1, false, 0, 3, false);
  EXPECT_EQ(s.active(), 1);
  s.note(2, false, 0, 4, true);
  EXPECT_EQ(s.active(), 2);
  for (int i = 0; i < 5; ++i) s.note(3, true, 1e6, 3, true);
  EXPECT_EQ(s.active(), 3);
}

TEST(lane_scaling, does_not_for_items_that_are_worth_no_move_nor_when_nothing_waits) {
  lane_scaling s(1, 8);
  for (int i = 1; i < 100; ++i) s.note(i * ms, false, 500, 64, true);
  EXPECT_EQ(s.active(), 1);
  lane_scaling t(1, 8);
  for (int i = 1; i < 100; ++i) t.note(i * ms, true, 1e6, 0, true);  // all of it is in hands
  EXPECT_EQ(t.active(), 1);
}

TEST(lane_scaling, doubles_where_items_have_waited_for_a_while) {
  lane_scaling s(1, 8);
  for (std::int64_t now = 1; now < 9 * ms; now += ms) s.note(now, true, 1e6, 5, false);
  EXPECT_EQ(s.active(), 1);
  for (std::int64_t now = 9 * ms; now < 12 * ms; now += ms) s.note(now, true, 1e6, 5, false);
  EXPECT_EQ(s.active(), 2);
  for (std::int64_t now = 12 * ms; now < 40 * ms; now += ms) s.note(now, true, 1e6, 5, false);
  EXPECT_EQ(s.active(), 8);  // 5 items wait for 4 lanes: more than one for each
  for (std::int64_t now = 40 * ms; now < 80 * ms; now += ms) s.note(now, true, 1e6, 5, false);
  EXPECT_EQ(s.active(), 8);
}

TEST(lane_scaling, uses_fewer_after_a_longer_while_in_which_half_would_do) {
  lane_scaling s(2, 8);
  for (int i = 0; i < 8; ++i) s.note(1, true, 1e6, 4, true);
  ASSERT_EQ(s.active(), 8);
  std::int64_t now = 2;
  run_quietly(s, now, 60 * ms, 2e6, ms);  // two lanes' worth of work
  EXPECT_EQ(s.active(), 8);
  run_quietly(s, now, 150 * ms, 2e6, ms);
  EXPECT_EQ(s.active(), 3);  // a half more than is needed
  run_quietly(s, now, 1000 * ms, 1e3, ms);
  EXPECT_EQ(s.active(), 2);  // the least
}

TEST(lane_scaling, keeps_lanes_that_work) {
  lane_scaling s(1, 4);
  for (int i = 0; i < 4; ++i) s.note(1, true, 1e6, 4, true);
  std::int64_t now = 2;
  run_quietly(s, now, 1000 * ms, 3e6, ms);
  EXPECT_EQ(s.active(), 4);
}

struct nothing final : strand {
  troupe::detail::streams::ran run(std::int64_t) override { return troupe::detail::streams::ran::ended; }
  double waiting_ns() const noexcept override { return 0; }
};

TEST(takers, gives_the_last_that_came_of_the_lanes_in_use) {
  std::vector<nothing> s(4);
  takers t;
  EXPECT_EQ(t.next(4), nullptr);
  for (int lane : {0, 3, 1}) t.wait(s[static_cast<std::size_t>(lane)], lane);
  t.wait(s[1], 1);  // once
  EXPECT_EQ(t.next(3), &s[1]);
  EXPECT_EQ(t.next(3), &s[0]);
  EXPECT_EQ(t.next(3), nullptr);
  t.wait(s[2], 2);
  t.wait_no_more(s[2]);
  std::vector<strand*> all;
  t.take_all(all);
  EXPECT_EQ(all, std::vector<strand*>{&s[3]});
  EXPECT_EQ(t.next(4), nullptr);
}

}  // namespace
