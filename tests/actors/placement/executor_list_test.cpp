// What this file is for: the executors are known by their numbers, and those of other nodes are told apart.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
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
  EXPECT_EQ(std::vector<executor*>(all.near().begin(), all.near().end()), (std::vector<executor*>{&cores, &gpu}));
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

TEST(executor_list, limits_memory_with_a_device_or_a_budget) {
  collector cores({0, "cpu:0", device_kind::cpu, host_space, 2}), gpu({1, "cuda:0", device_kind::cuda, 1, 1});
  executor_list plain, under_budget(true);
  plain.add(cores);
  EXPECT_FALSE(plain.limits_memory());
  plain.add(gpu);
  EXPECT_TRUE(plain.limits_memory());
  under_budget.add(cores);
  EXPECT_TRUE(under_budget.limits_memory());
  EXPECT_FALSE(under_budget.has_devices());
}

TEST(executor_list, lets_tasks_be_released_early_where_core_groups_come_first_and_there_is_no_budget) {
  collector first({0, "cpu:0", device_kind::cpu, host_space, 2}), second({1, "cpu:1", device_kind::cpu, host_space, 2}),
      gpu({2, "cuda:0", device_kind::cuda, 1, 1}), gpu_alone({0, "cuda:0", device_kind::cuda, 1, 1}),
      behind({1, "cpu:0", device_kind::cpu, host_space, 2});
  executor_list all, under_budget(true), devices_first;
  EXPECT_FALSE(all.may_release_early());
  all.add(first);
  EXPECT_TRUE(all.may_release_early());
  all.add(second);
  all.add(gpu);
  EXPECT_TRUE(all.may_release_early());
  EXPECT_EQ(all.groups(), 2u);
  under_budget.add(first);
  EXPECT_FALSE(under_budget.may_release_early());
  devices_first.add(gpu_alone);
  devices_first.add(behind);
  EXPECT_FALSE(devices_first.may_release_early());
}

TEST(executor_list, shares_no_cache_line_of_what_submitting_threads_read) {
  std::vector<std::unique_ptr<collector>> cores;
  executor_list all;
  for (std::uint16_t i = 0; i < 40; ++i) {
    cores.push_back(std::make_unique<collector>(executor_facts{i, "cpu:0", device_kind::cpu, host_space, 1}));
    all.add(*cores.back());
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(all.near().data()) % own_lines<executor*>::line, 0u) << i;
  }
}

}  // namespace
