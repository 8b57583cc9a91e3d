// What this file is for: what a wake-up takes is measured once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "devices/threads.hpp"

namespace {

using troupe::devices::wake_up_time;

TEST(wake_up, is_measured_once_for_all_threads) {
  std::vector<std::chrono::nanoseconds> seen(4);
  {
    std::vector<std::jthread> all;
    for (auto& s : seen) all.emplace_back([&] { s = wake_up_time(); });
  }
  for (const auto s : seen) EXPECT_EQ(s, seen[0]);
  EXPECT_EQ(wake_up_time(), seen[0]);
  // Nothing is asserted of how fast the machine is, but that a thread was woken: no system does that in 100 ns.
  EXPECT_GT(wake_up_time(), std::chrono::nanoseconds(100));
  EXPECT_LT(wake_up_time(), std::chrono::seconds(10));
}

}  // namespace
