// What this file is for: how fast a link is, out of transfers that overlap, wait and fail.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/transfer_rate.hpp"

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using troupe::net::transfer_rate;
constexpr std::uint64_t MiB = 1u << 20;
constexpr transfer_rate::time_point zero{};

TEST(transfer_rate, is_nothing_before_the_first_and_while_that_is_under_way) {
  transfer_rate r;
  EXPECT_EQ(r.bytes_per_second(), 0);
  r.begin(MiB, zero);
  EXPECT_EQ(r.bytes_per_second(), 0);
  r.end(MiB, true, zero + 10ms);
  EXPECT_DOUBLE_EQ(r.bytes_per_second(), 100.0 * MiB);
}

TEST(transfer_rate, time_in_which_nothing_is_under_way_does_not_count) {
  transfer_rate r;
  r.begin(MiB, zero);
  r.end(MiB, true, zero + 10ms);
  r.begin(MiB, zero + 10h);
  r.end(MiB, true, zero + 10h + 10ms);
  EXPECT_DOUBLE_EQ(r.bytes_per_second(), 100.0 * MiB);
}

TEST(transfer_rate, transfers_that_share_the_link_are_one_rate) {
  transfer_rate r;
  for (int i = 0; i < 4; ++i) r.begin(MiB, zero);
  for (int i = 0; i < 4; ++i) r.end(MiB, true, zero + 40ms);
  EXPECT_DOUBLE_EQ(r.bytes_per_second(), 100.0 * MiB);
}

TEST(transfer_rate, what_did_not_arrive_has_cost_time_only) {
  transfer_rate r;
  r.begin(MiB, zero);
  r.begin(MiB, zero);
  r.end(MiB, false, zero + 10ms);
  r.end(MiB, true, zero + 20ms);
  EXPECT_DOUBLE_EQ(r.bytes_per_second(), 50.0 * MiB);
}

TEST(transfer_rate, small_bodies_say_nothing) {
  transfer_rate r;
  r.begin(1000, zero);
  r.end(1000, true, zero + 1s);
  EXPECT_EQ(r.bytes_per_second(), 0);
}

TEST(transfer_rate, it_follows_a_link_that_has_become_slow) {
  transfer_rate r;
  auto now = zero;
  const auto carry = [&](std::chrono::milliseconds each) {
    r.begin(MiB, now);
    now += each;
    r.end(MiB, true, now);
  };
  for (int i = 0; i < 1000; ++i) carry(1ms);
  EXPECT_NEAR(r.bytes_per_second(), 1000.0 * MiB, 1.0 * MiB);
  for (int i = 0; i < 60; ++i) carry(100ms);
  EXPECT_NEAR(r.bytes_per_second(), 10.0 * MiB, 1.0 * MiB);
}

}  // namespace
