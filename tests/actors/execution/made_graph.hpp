// What this file is for: recorded graphs without bodies, made of edges.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "actors/execution/graph_run.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/memory/runtime_state.hpp"

namespace test {

using namespace troupe::detail;

struct edge {
  std::uint32_t from, to;
  bool data = true;
};

/// A graph without bodies.
class made_graph {
 public:
  made_graph(std::uint32_t nodes, const std::vector<edge>& edges) : edges_(edges) {
    graph.nodes = std::vector<replay_node>(nodes);
    for (std::uint32_t n = 0; n < nodes; ++n) {
      replay_node& node = graph.nodes[n];
      node.task = take_record(*rt_);
      node.first = static_cast<std::uint32_t>(graph.successors.size());
      for (const edge& e : edges) {
        if (e.from == n) graph.successors.push_back(e.to | (e.data ? recorded_graph::data_bit : 0));
        if (e.to == n) ++node.initial;
      }
      node.count = static_cast<std::uint32_t>(graph.successors.size()) - node.first;
      if (node.initial == 0) graph.roots.push_back(n);
    }
  }
  ~made_graph() {
    for (replay_node& n : graph.nodes) rt_->records.give(n.task);
    graph.nodes.clear();
    rt_->release();
  }
  made_graph(const made_graph&) = delete;
  made_graph& operator=(const made_graph&) = delete;
  const std::vector<edge>& edges() const { return edges_; }

  recorded_graph graph;

 private:
  runtime_state* rt_ = new runtime_state;
  std::vector<edge> edges_;
};

}  // namespace test
