// What this file is for: the last run of a graph is remembered while the graph lives, and its capture is dropped once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/graph_captures.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace troupe::detail;
namespace devices = troupe::devices;

struct captures_test : testing::Test {
  graph_captures::run& run(const std::shared_ptr<recorded_graph>& g) {
    return all.last_run(g, [&](devices::capture_id c) { dropped.push_back(c); });
  }
  graph_captures all;
  std::vector<devices::capture_id> dropped;
};

TEST_F(captures_test, are_those_of_the_last_run_of_the_same_graph) {
  const auto g = std::make_shared<recorded_graph>(), h = std::make_shared<recorded_graph>();
  run(g).memory = std::vector<void*>{this};
  EXPECT_FALSE(run(h).memory);
  EXPECT_EQ(run(g).memory, std::vector<void*>{this});
  EXPECT_EQ(all.size(), 2u);
}

TEST_F(captures_test, are_dropped_when_their_graph_is_gone_and_another_one_runs) {
  auto g = std::make_shared<recorded_graph>();
  const devices::capture_id id{};
  run(g).captured = id;
  run(g);
  EXPECT_TRUE(dropped.empty());
  g.reset();
  const auto h = std::make_shared<recorded_graph>();
  run(h);
  EXPECT_EQ(dropped.size(), 1u);
  EXPECT_EQ(all.size(), 1u);
  run(h);
  EXPECT_EQ(dropped.size(), 1u);
}

TEST_F(captures_test, are_not_dropped_when_they_have_gone_with_their_device) {
  const auto g = std::make_shared<recorded_graph>();
  run(g).captured = devices::capture_id{};
  all.forget();
  EXPECT_FALSE(run(g).captured);
  EXPECT_TRUE(dropped.empty());
}

}  // namespace
