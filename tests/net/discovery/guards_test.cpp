// What this file is for: limits per address and in total, and windows of counters.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "net/discovery/guards.hpp"

namespace {

using namespace troupe::net;
using namespace std::chrono_literals;

const guard_time start{};

node_id node(std::uint32_t n) {
  node_id id;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(&n), sizeof n, id.bytes.begin());
  return id;
}

TEST(rate_limits, let_through_a_burst_and_then_the_rate) {
  rate_limit limit(10, 1000, start);
  int through = 0;
  for (int i = 0; i < 10'000; ++i) through += limit.allow(1, start + i * 1ms);  // 10 s
  EXPECT_GE(through, 10 + 98);
  EXPECT_LE(through, 10 + 101);
}

TEST(rate_limits, are_each_addresss_own) {
  rate_limit limit(10, 1000, start);
  for (int i = 0; i < 100; ++i) limit.allow(1, start);
  EXPECT_FALSE(limit.allow(1, start));
  EXPECT_TRUE(limit.allow(2, start));
}

TEST(rate_limits, bound_what_forged_addresses_can_do_together) {
  rate_limit limit(10, 100, start);
  int through = 0;
  for (std::uint32_t i = 0; i < 100'000; ++i) through += limit.allow(i, start);
  EXPECT_EQ(through, 100);
  EXPECT_FALSE(limit.allow(7, start + 1ms));
  EXPECT_TRUE(limit.allow(7, start + 1s));
}

TEST(rate_limits, of_one_address_leave_the_total_to_others) {
  rate_limit limit(10, 20, start);
  for (int i = 0; i < 100'000; ++i) limit.allow(1, start);
  EXPECT_TRUE(limit.allow(2, start));
}

TEST(rate_limits, give_nothing_for_time_that_runs_backwards) {
  rate_limit limit(1, 10, start + 1h);
  EXPECT_TRUE(limit.allow(1, start + 1h));
  EXPECT_FALSE(limit.allow(1, start));
}

TEST(replays, are_found_in_any_order_of_arrival) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    replay_guard guard;
    std::vector<std::uint64_t> counters(64);
    std::iota(counters.begin(), counters.end(), 1);
    std::shuffle(counters.begin(), counters.end(), random);
    for (const auto c : counters) EXPECT_TRUE(guard.is_new(node(1), 1, c, start));
    for (const auto c : counters) EXPECT_FALSE(guard.is_new(node(1), 1, c, start));
  }
}

TEST(replays, agree_with_a_list_of_all_that_was_seen) {
  std::mt19937 random(4);
  replay_guard guard;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t counter = static_cast<std::uint64_t>(i) / 4 + random() % 100;
    const std::uint64_t highest = seen.empty() ? 0 : *seen.rbegin();
    const bool expected = seen.empty() || counter > highest || (highest - counter < 64 && !seen.count(counter));
    EXPECT_EQ(guard.is_new(node(1), 1, counter, start), expected) << counter;
    if (expected) seen.insert(counter);
  }
}

TEST(replays, of_counters_at_the_end_of_their_range_are_found) {
  replay_guard guard;
  const std::uint64_t last = ~std::uint64_t{};
  EXPECT_TRUE(guard.is_new(node(1), 1, 0, start));
  EXPECT_TRUE(guard.is_new(node(1), 1, last, start));
  EXPECT_FALSE(guard.is_new(node(1), 1, last, start));
  EXPECT_FALSE(guard.is_new(node(1), 1, 0, start));
  EXPECT_TRUE(guard.is_new(node(1), 1, last - 63, start));
  EXPECT_FALSE(guard.is_new(node(1), 1, last - 64, start));
}

TEST(replays, of_an_earlier_incarnation_are_refused_and_a_later_one_begins_anew) {
  replay_guard guard;
  EXPECT_TRUE(guard.is_new(node(1), 5, 100, start));
  EXPECT_TRUE(guard.is_new(node(1), 6, 1, start));
  EXPECT_FALSE(guard.is_new(node(1), 5, 101, start));
  EXPECT_FALSE(guard.is_new(node(1), 6, 1, start));
  EXPECT_TRUE(guard.is_new(node(2), 5, 100, start));  // another node's counters are its own
}

TEST(replays, are_remembered_of_so_many_nodes_and_the_silent_are_forgotten_first) {
  replay_guard guard;
  for (std::uint32_t i = 0; i < replay_guard::nodes_max; ++i) EXPECT_TRUE(guard.is_new(node(i), 1, 1, start + i * 1s));
  EXPECT_TRUE(guard.is_new(node(0), 1, 2, start + 1h));  // it has spoken again, node 1 is the most silent now
  EXPECT_TRUE(guard.is_new(node(9999), 1, 1, start + 1h));
  EXPECT_FALSE(guard.is_new(node(0), 1, 1, start + 1h));
  EXPECT_FALSE(guard.is_new(node(2), 1, 1, start + 1h));
  EXPECT_TRUE(guard.is_new(node(1), 1, 1, start + 1h));
}

}  // namespace
