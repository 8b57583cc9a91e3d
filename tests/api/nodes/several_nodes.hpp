// What this file is for: runtimes of one process that are nodes to each other, joined over loopback sockets.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "tests/support/comes_true.hpp"

namespace test {

using namespace std::chrono_literals;

inline const std::string cluster_name = "several-nodes-test";

inline troupe::options node_options(const std::string& name, const std::vector<std::string>& join = {}, int threads = 2,
                                    std::chrono::milliseconds replay_max = troupe::cluster_options{}.replay_max) {
  troupe::options o;
  o.threads = threads;
  o.cluster.cluster_name = cluster_name;
  o.cluster.node_name = name;
  o.cluster.insecure_loopback = true;
  o.cluster.listen = {"127.0.0.1:0"};
  o.cluster.join = join;
  o.cluster.replay_max = replay_max;
  o.cluster.link_check_after = 1h;  // tests count bytes
  return o;
}

/// "a", where the test spawns, and "b" and "c", which it has found; `others` of them.
struct several_nodes {
  explicit several_nodes(int others = 2, int threads = 2,
                         std::chrono::milliseconds replay_max = troupe::cluster_options{}.replay_max)
      : a(node_options("a", {}, threads, replay_max)) {
    for (int i = 0; i < others; ++i)
      rest.push_back(std::make_unique<troupe::runtime>(
          node_options(std::string(1, "bcdefgh"[i]), a.addresses(), threads, replay_max)));
    EXPECT_TRUE(a.wait_for_nodes(static_cast<std::size_t>(others), 20s));
    for (const auto& r : rest) EXPECT_TRUE(r->wait_for_nodes(static_cast<std::size_t>(others), 20s));
  }
  troupe::runtime& b() { return *rest.at(0); }

  troupe::runtime a;
  std::vector<std::unique_ptr<troupe::runtime>> rest;
};

inline std::uint64_t tasks_of(const troupe::runtime& rt, const std::string& executor) {
  for (const auto& e : rt.executors())
    if (e.name == executor) return e.tasks;
  return 0;
}
/// Bytes over all connections of a node, both ways.
inline std::uint64_t bytes_of(const troupe::runtime& rt) {
  std::uint64_t sum = 0;
  for (const auto& r : rt.nodes()) sum += r.bytes_in + r.bytes_out;
  return sum;
}
inline troupe::task_options on(const std::string& node) { return {.where = troupe::scope::at(node)}; }

}  // namespace test
