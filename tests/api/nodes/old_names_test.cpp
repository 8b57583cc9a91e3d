// What this file is for: what is said or asked under the names of an earlier release still holds.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include <troupe/troupe.hpp>

#include "several_nodes.hpp"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

using troupe::cluster_options;
using troupe::with_environment;

TEST(old_names, of_cluster_options_are_read_where_the_new_ones_are_empty) {
  cluster_options o{.from_environment = false, .name = "lab", .node = "n1", .join_names = {"seeds:1"}};
  o = with_environment(o);
  EXPECT_EQ(o.cluster_name, "lab");
  EXPECT_EQ(o.node_name, "n1");
  EXPECT_EQ(o.join_dns, std::vector<std::string>{"seeds:1"});
  cluster_options both;
  both.cluster_name = "new";
  both.name = "old";
  EXPECT_EQ(with_environment(both).cluster_name, "new");
}

TEST(old_names, of_errors_are_the_same_values) {
  EXPECT_EQ(troupe::errc::dependency_failed, troupe::errc::dependency_failed);
  EXPECT_EQ(troupe::errc::protocol_error, troupe::errc::protocol_error);
  EXPECT_STREQ(to_string(troupe::errc::dependency_failed), "dependency_failed");
}

TEST(old_names, of_nodes_make_a_cluster) {
  auto options = [](const char* node) {
    troupe::options o = test::node_options(node);
    o.cluster.name = std::exchange(o.cluster.cluster_name, {});
    o.cluster.node = std::exchange(o.cluster.node_name, {});
    return o;
  };
  const troupe::runtime a(options("a"));
  troupe::options o = options("b");
  o.cluster.join = {a.addresses().at(0)};
  const troupe::runtime b(o);
  ASSERT_TRUE(b.wait_for_nodes(1, std::chrono::seconds(30)));
  EXPECT_EQ(b.nodes().at(0).name, "a");
  EXPECT_EQ(b.survey(std::chrono::seconds(10)).members.size(), 2u);
  EXPECT_TRUE(b.refusals().empty());
}

TEST(old_names, of_counters_say_the_same) {
  troupe::runtime rt({.threads = 1});
  rt.spawn([] {}).get();
  const troupe::runtime_report r = rt.report();
  EXPECT_GT(r.turns, 0u);
  EXPECT_EQ(r.turns, r.scheduling_passes);
  troupe::executor_report e = rt.executors().at(0);
  EXPECT_EQ(e.behind, e.chained);
  EXPECT_EQ(e.by_waiters, e.launched_by_waiters);
}

}  // namespace
