// What this file is for: many workers that come at once, and most of them killed at once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <csignal>

#include "tests/system/cluster.hpp"

namespace {

using namespace test;

TEST(crowd, seven_of_ten_workers_that_joined_at_once_may_be_killed_at_once) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  std::vector<worker> all;
  const auto begin = clock::now();
  for (int i = 0; i < 10; ++i) all.emplace_back("w" + std::to_string(i), proof, rt.addresses().front());
  ASSERT_TRUE(rt.wait_for_nodes(10, 10s));
  RecordProperty("joined_ms", static_cast<int>(seconds_since(begin) * 1000));
  scope workers = scope::at("w0");
  for (int i = 1; i < 10; ++i) workers = workers | scope::at("w" + std::to_string(i));
  chains work(rt, chains::results::come_home, 20, 1'000);
  work.grow(100, workers);
  ASSERT_TRUE(
      comes_true(rt, [&] { return std::ranges::all_of(rt.nodes(), [](const auto& n) { return n.tasks > 2; }); }));
  const auto killed = clock::now();
  for (std::size_t i = 0; i < 7; ++i) all[i].process.signal(SIGKILL);
  ASSERT_TRUE(comes_true(rt, [&] { return rt.nodes().size() == 3; }));
  const double detected = seconds_since(killed);
  const std::uint64_t done = work.finished();
  EXPECT_LT(done, work.spawned());
  EXPECT_TRUE(comes_true(
      rt, [&] { return work.finished() > done; }, 1s));
  RecordProperty("detected_ms", static_cast<int>(detected * 1000));
  RecordProperty("flows_ms", static_cast<int>((seconds_since(killed) - detected) * 1000));
  if (!sanitized) {
    EXPECT_LT(detected, 0.3);
  }
  ASSERT_TRUE(rt.wait_all_for(20s));
  EXPECT_EQ(work.wrong(), 0);
  for (std::size_t i = 7; i < 10; ++i) EXPECT_GT(all[i].ran(), 0u);
}

}  // namespace
