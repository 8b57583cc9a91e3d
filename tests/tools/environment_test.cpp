// What this file is for: `troupe node` and `troupe nodes` read the environment as programs do.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "tests/api/nodes/several_nodes.hpp"
#include "tests/support/processes.hpp"

namespace {

using namespace std::chrono_literals;
using test::child_options;
using test::ended_with;
using test::finished;
using testing::HasSubstr;
using words = std::vector<std::string>;

words tool(words more) {
  more.insert(more.begin(), TROUPE_BIN_DIR "/troupe");
  return more;
}

child_options surroundings(const std::string& join, words more = {}) {
  words all{"TROUPE_CLUSTER=" + test::cluster_name, "TROUPE_INSECURE_LOOPBACK=1", "TROUPE_NODE=worker",
            "TROUPE_LISTEN=127.0.0.1:0", "TROUPE_JOIN=" + join};
  all.insert(all.end(), more.begin(), more.end());
  return {.environment = all};
}

TEST(the_tool_environment, makes_a_node_and_shows_it) {
  test::several_nodes n(0);
  const child_options around = surroundings(n.a.addresses().front());
  test::child worker(tool({"node"}), around);
  worker.line_after("listening 127.0.0.1:");
  ASSERT_TRUE(n.a.wait_for_nodes(1, 20s));
  EXPECT_EQ(n.a.nodes().at(0).name, "worker");
  // The variables are the worker's: the tool that looks takes neither its name nor its address.
  const finished done = test::run(tool({"nodes"}), around);
  EXPECT_EQ(done.how, ended_with(0)) << done.err;
  EXPECT_THAT(done.out, HasSubstr("\nworker "));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), ended_with(0));
}

TEST(the_tool_environment, counts_for_less_than_the_command_line) {
  test::several_nodes n(0);
  test::child worker(tool({"node", "--name", "called", "--join", n.a.addresses().front()}),
                     surroundings("127.0.0.1:1"));
  ASSERT_TRUE(n.a.wait_for_nodes(1, 20s));
  EXPECT_EQ(n.a.nodes().at(0).name, "called");
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), ended_with(0));
}

TEST(the_tool_environment, is_not_looked_at_beside_the_name_of_a_cluster) {
  test::child worker(tool({"node", "--cluster", "another", "--insecure-loopback"}),
                     surroundings("127.0.0.1:1", {"TROUPE_SECRET_FILE=/no/such/file"}));
  worker.line_after("ready ");
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), ended_with(0));
  EXPECT_EQ(worker.out().find("listening "), std::string::npos) << worker.out();
}

TEST(the_tool_environment, or_the_command_line_must_name_a_cluster) {
  for (const char* command : {"node", "nodes"}) {
    const finished done = test::run(tool({command}), {.environment = {"TROUPE_CLUSTER="}});
    EXPECT_EQ(done.how, ended_with(2));
    EXPECT_THAT(done.err, testing::AllOf(HasSubstr("--cluster"), HasSubstr("TROUPE_CLUSTER")));
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
  }
}

}  // namespace
