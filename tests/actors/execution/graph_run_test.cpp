// What this file is for: a run of a recorded graph: every node once, after its predecessors, and failure along data only.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "actors/execution/graph_run.hpp"

namespace {

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

// The next node for this thread; the owner of a run waits until it is over.
bool next(graph_run& run, graph_run::hand& h, std::uint32_t& node, bool owner) {
  while (!run.next(h, node)) {
    if (!owner || run.is_over()) return false;
    run.await_more();
  }
  return true;
}

std::vector<edge> random_edges(std::uint32_t nodes, std::mt19937& random) {
  std::vector<edge> edges;
  for (std::uint32_t to = 1; to < nodes; ++to)
    for (std::uint32_t i = 0; i < 3; ++i)
      if (random() % 4 != 0) edges.push_back({static_cast<std::uint32_t>(random() % to), to, random() % 2 == 0});
  return edges;
}

// Runs it alone; `fails(n)` says which bodies fail. Gives the order.
template <class Fails>
std::vector<std::uint32_t> run_alone(recorded_graph& g, const Fails& fails) {
  graph_run run(g);
  graph_run::hand hand;
  std::vector<std::uint32_t> order;
  std::uint32_t n = 0;
  while (next(run, hand, n, true)) {
    order.push_back(n);
    run.finished(hand, n, !g.nodes[n].poisoned.load() && !fails(n));
  }
  return order;
}

TEST(graph_run, without_nodes_is_over_at_once) {
  made_graph g(0, {});
  EXPECT_TRUE(run_alone(g.graph, [](auto) { return false; }).empty());
}

TEST(graph_run, gives_every_node_once_and_after_its_predecessors) {
  std::mt19937 random(21);
  for (int i = 0; i < 50; ++i) {
    const auto nodes = static_cast<std::uint32_t>(1 + random() % 60);
    made_graph g(nodes, random_edges(nodes, random));
    const auto order = run_alone(g.graph, [](auto) { return false; });
    ASSERT_EQ(order.size(), nodes);
    std::vector<std::size_t> when(nodes, nodes);
    for (std::size_t k = 0; k < order.size(); ++k) {
      ASSERT_EQ(when[order[k]], nodes) << "node " << order[k] << " twice";
      when[order[k]] = k;
    }
    for (const edge& e : g.edges()) ASSERT_LT(when[e.from], when[e.to]);
  }
}

TEST(graph_run, starts_roots_in_program_order) {
  made_graph g(5, {});
  EXPECT_EQ(run_alone(g.graph, [](auto) { return false; }), (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

TEST(graph_run, lets_failure_pass_along_data_edges_and_not_along_others) {
  //  0 -data-> 1 -data-> 3      0 -order-> 2 -data-> 4
  made_graph g(5, {{0, 1, true}, {0, 2, false}, {1, 3, true}, {2, 4, true}});
  const auto order = run_alone(g.graph, [](std::uint32_t n) { return n == 0; });
  EXPECT_EQ(order.size(), 5u) << "failed nodes are passed through, so that the run ends";
  const bool poisoned[5] = {false, true, false, true, false};
  for (std::size_t n = 0; n < 5; ++n) EXPECT_EQ(g.graph.nodes[n].poisoned.load(), poisoned[n]) << n;
}

TEST(graph_run, poisons_exactly_what_a_path_of_data_edges_reaches) {
  std::mt19937 random(22);
  for (int i = 0; i < 50; ++i) {
    made_graph g(40, random_edges(40, random));
    std::vector<bool> fails(40), expected(40);
    for (std::size_t n = 0; n < 40; ++n) fails[n] = random() % 12 == 0;
    for (const edge& e : g.edges())  // sorted by target
      if (e.data && (fails[e.from] || expected[e.from])) expected[e.to] = true;
    run_alone(g.graph, [&](std::uint32_t n) { return fails[n]; });
    for (std::size_t n = 0; n < 40; ++n) ASSERT_EQ(g.graph.nodes[n].poisoned.load(), expected[n]) << "node " << n;
  }
}

TEST(graph_run, starts_afresh_after_a_run_that_failed) {
  made_graph g(2, {{0, 1, true}});
  run_alone(g.graph, [](std::uint32_t n) { return n == 0; });
  EXPECT_TRUE(g.graph.nodes[1].poisoned.load());
  EXPECT_EQ(run_alone(g.graph, [](auto) { return false; }).size(), 2u);
  EXPECT_FALSE(g.graph.nodes[1].poisoned.load());
}

TEST(graph_run, keeps_the_first_error) {
  made_graph g(1, {});
  graph_run run(g.graph);
  const auto first = std::make_exception_ptr(1), second = std::make_exception_ptr(2);
  run.fail(first);
  run.fail(second);
  EXPECT_EQ(run.error, first);
}

TEST(graph_run, sends_a_helper_away_who_finds_nothing_while_the_owner_works) {
  made_graph g(2, {{0, 1, true}});
  graph_run run(g.graph);
  graph_run::hand owner, helper;
  std::uint32_t n = 9;
  ASSERT_TRUE(next(run, owner, n, true));
  EXPECT_EQ(n, 0u);
  EXPECT_FALSE(next(run, helper, n, false));
  run.finished(owner, 0, true);
  ASSERT_TRUE(next(run, owner, n, true));
  EXPECT_EQ(n, 1u);
  run.finished(owner, 1, true);
  EXPECT_FALSE(next(run, owner, n, true));
}

TEST(graph_run, with_helpers_runs_every_node_once_and_in_order) {
  std::mt19937 random(23);
  made_graph g(3000, random_edges(3000, random));
  for (int round = 0; round < 5; ++round) {
    graph_run run(g.graph);
    std::vector<std::atomic<int>> times(3000);
    std::atomic<int> early{0};
    std::vector<std::vector<std::uint32_t>> before(3000);
    for (const edge& e : g.edges()) before[e.to].push_back(e.from);
    const auto work = [&](bool owner) {
      graph_run::hand hand;
      std::uint32_t n = 0;
      while (next(run, hand, n, owner)) {
        for (const std::uint32_t p : before[n])
          if (times[p].load(std::memory_order_acquire) == 0) ++early;
        times[n].fetch_add(1, std::memory_order_release);
        run.finished(hand, n, true);
      }
    };
    std::vector<std::thread> helpers;
    for (int i = 0; i < 3; ++i) {
      run.join();
      helpers.emplace_back([&] {
        work(false);
        run.leave();
      });
    }
    work(true);
    run.wait_for_helpers();
    for (auto& t : helpers) t.join();
    EXPECT_EQ(early, 0);
    for (const auto& n : times) ASSERT_EQ(n, 1);
  }
}

}  // namespace
