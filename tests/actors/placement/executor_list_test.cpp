// What this file is for: the executors are known by their numbers, and those of other nodes are told apart.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <vector>

#include "actors/placement/executor_list.hpp"
#include "collector.hpp"

namespace {

using namespace test;
using troupe::device_kind;

TEST(executor_list, tells_nodes_from_those_that_are_here) {
  collector cores({0, "cpu:0", device_kind::cpu, host_space, 2}), gpu({1, "cuda:0", device_kind::cuda, 1, 1}),
      node({2, "node:0", device_kind::node, 2, 1});
  executor_list all;
  all.add(cores);
  EXPECT_FALSE(all.has_devices());
  all.add(gpu);
  all.add(node);
  EXPECT_TRUE(all.has_devices());
  EXPECT_EQ(all.size(), 3u);
  EXPECT_EQ(all.near(), (std::vector<executor*>{&cores, &gpu}));
  EXPECT_EQ(all.all(), (std::vector<executor*>{&cores, &gpu, &node}));
  EXPECT_EQ(&all[2], &node);
}

TEST(executor_list, counts_a_node_as_memory_elsewhere) {
  collector node({0, "node:0", device_kind::node, 1, 1});
  executor_list all;
  all.add(node);
  EXPECT_TRUE(all.has_devices());
  EXPECT_TRUE(all.near().empty());
}

}  // namespace
