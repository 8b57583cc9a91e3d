// What this file is for: a run of a recorded graph: every node once, after its predecessors, failure by data only.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "actors/execution/graph_nodes.hpp"
#include "actors/execution/graph_run.hpp"
#include "made_graph.hpp"

namespace {

using namespace troupe::detail;

using test::edge;
using test::made_graph;

constexpr std::uint64_t patience = 100'000;  // ticks
constexpr float wake_ticks = 1;

// The next node for this thread; the owner of a run waits until it is over.
bool next(graph_run& run, graph_run::hand& h, std::uint32_t& node, bool owner) {
  while (!run.next(h, node, patience)) {
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
  graph_run run(g, 1);
  graph_run::hand& hand = run.take_hand();
  std::vector<std::uint32_t> order;
  std::uint32_t n = 0;
  while (next(run, hand, n, true)) {
    order.push_back(n);
    run.finished(hand, n, !g.nodes[n].poisoned.load() && !fails(n), wake_ticks);
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

// Steps of 1 to 12 nodes, each of which needs all of the step before, by data or not, some of these twice; now and then
// with an odd edge, or one from a node two steps before.
struct steps_of_all {
  std::uint32_t nodes = 0;
  std::vector<edge> edges{};
};
steps_of_all random_steps(std::uint32_t steps, std::mt19937& random) {
  steps_of_all made;
  std::uint32_t before = 0, begin = 0, before_that = 0;
  for (std::uint32_t s = 0; s < steps; ++s) {
    const auto width = static_cast<std::uint32_t>(1 + random() % 12);
    const bool data = random() % 2 == 0, odd = random() % 3 == 0, twice = random() % 4 == 0, far = random() % 3 == 0;
    for (std::uint32_t to = made.nodes; to < made.nodes + width; ++to) {
      const std::uint32_t own = to - made.nodes;
      if (far && own < begin - before_that) made.edges.push_back({before_that + own, to, true});
      for (std::uint32_t from = begin; from < begin + before; ++from) {
        if (twice) made.edges.push_back({from, to, false});
        if (!odd || random() % 8 != 0) made.edges.push_back({from, to, data != (odd && random() % 8 == 0)});
      }
    }
    before_that = begin;
    begin = made.nodes;
    before = width;
    made.nodes += width;
  }
  return made;
}

TEST(graph_run, nodes_with_the_same_successors_meet) {
  std::vector<edge> edges;
  for (std::uint32_t to = 4; to < 8; ++to)
    for (std::uint32_t from = 0; from < 4; ++from) edges.push_back({from, to, true});
  for (std::uint32_t to = 8; to < 11; ++to)
    for (std::uint32_t from = 4; from < 8; ++from) edges.push_back({from, to, true});
  made_graph g(11, edges);
  let_nodes_meet(g.graph);
  ASSERT_EQ(g.graph.meetings.size(), 1u) << "four before four are worth it, four before three are not";
  for (std::uint32_t n = 0; n < 11; ++n) EXPECT_EQ(g.graph.nodes[n].meeting == replay_node::alone, n >= 4) << n;
  for (std::uint32_t n = 4; n < 8; ++n) EXPECT_EQ(g.graph.nodes[n].initial, 1) << n;
  EXPECT_EQ(run_alone(g.graph, [](auto) { return false; }).size(), 11u);
  EXPECT_EQ(run_alone(g.graph, [](auto) { return false; }).size(), 11u) << "again";
}

TEST(graph_run, nodes_do_not_meet_where_an_edge_carries_data_for_some_only) {
  std::vector<edge> edges;
  for (std::uint32_t to = 4; to < 8; ++to)
    for (std::uint32_t from = 0; from < 4; ++from) edges.push_back({from, to, from != to - 4});
  made_graph g(8, edges);
  let_nodes_meet(g.graph);
  EXPECT_TRUE(g.graph.meetings.empty());
}

TEST(graph_run, that_nodes_meet_changes_neither_order_nor_what_fails) {
  std::mt19937 random(24);
  std::size_t meetings = 0;
  for (int i = 0; i < 100; ++i) {
    const steps_of_all made = random_steps(8, random);
    made_graph plain(made.nodes, made.edges), met(made.nodes, made.edges);
    let_nodes_meet(met.graph);
    meetings += met.graph.meetings.size();
    std::vector<bool> fails(made.nodes);
    for (std::size_t n = 0; n < made.nodes; ++n) fails[n] = random() % 10 == 0;
    const auto does_fail = [&](std::uint32_t n) { return fails[n]; };
    run_alone(plain.graph, does_fail);
    const auto order = run_alone(met.graph, does_fail);
    ASSERT_EQ(order.size(), made.nodes);
    std::vector<std::size_t> when(made.nodes, made.nodes);
    for (std::size_t k = 0; k < order.size(); ++k) when[order[k]] = k;
    for (const edge& e : made.edges) ASSERT_LT(when[e.from], when[e.to]);
    for (std::size_t n = 0; n < made.nodes; ++n)
      ASSERT_EQ(met.graph.nodes[n].poisoned.load(), plain.graph.nodes[n].poisoned.load()) << "node " << n;
  }
  EXPECT_GT(meetings, 100u);
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
  graph_run run(g.graph, 1);
  const auto first = std::make_exception_ptr(1), second = std::make_exception_ptr(2);
  run.fail(first);
  run.fail(second);
  EXPECT_EQ(run.error, first);
}

TEST(graph_run, sends_a_helper_away_who_finds_nothing_while_the_owner_works) {
  made_graph g(2, {{0, 1, true}});
  graph_run run(g.graph, 2);
  graph_run::hand &owner = run.take_hand(), &helper = run.take_hand();
  std::uint32_t n = 9;
  ASSERT_TRUE(next(run, owner, n, true));
  EXPECT_EQ(n, 0u);
  EXPECT_FALSE(next(run, helper, n, false));
  run.finished(owner, 0, true, wake_ticks);
  ASSERT_TRUE(next(run, owner, n, true));
  EXPECT_EQ(n, 1u);
  run.finished(owner, 1, true, wake_ticks);
  EXPECT_FALSE(next(run, owner, n, true));
}

// Runs it five times with three helpers: every node once and after its predecessors. `fails(n)` says which bodies fail.
template <class Fails>
void run_with_helpers(made_graph& g, const Fails& fails) {
  const std::size_t nodes = g.graph.nodes.size();
  for (int round = 0; round < 5; ++round) {
    graph_run run(g.graph, 4);
    std::vector<std::atomic<int>> times(nodes);
    std::atomic<int> early{0};
    std::vector<std::vector<std::uint32_t>> before(nodes);
    for (const edge& e : g.edges()) before[e.to].push_back(e.from);
    const auto work = [&](bool owner, graph_run::hand& hand) {
      std::uint32_t n = 0;
      while (next(run, hand, n, owner)) {
        for (const std::uint32_t p : before[n])
          if (times[p].load(std::memory_order_acquire) == 0) ++early;
        times[n].fetch_add(1, std::memory_order_release);
        run.finished(hand, n, !g.graph.nodes[n].poisoned.load() && !fails(n), wake_ticks);
      }
    };
    graph_run::hand& owners = run.take_hand();
    std::vector<std::thread> helpers;
    for (int i = 0; i < 3; ++i) {
      run.join();
      helpers.emplace_back([&] {
        graph_run::hand& hand = run.take_hand();
        work(false, hand);
        run.give_hand(hand);
        run.leave();
      });
    }
    work(true, owners);
    run.wait_for_helpers();
    for (auto& t : helpers) t.join();
    EXPECT_EQ(early, 0);
    for (const auto& n : times) ASSERT_EQ(n, 1);
  }
}

TEST(graph_run, with_helpers_runs_every_node_once_and_in_order) {
  std::mt19937 random(23);
  made_graph g(3000, random_edges(3000, random));
  run_with_helpers(g, [](auto) { return false; });
}

TEST(graph_run, with_helpers_runs_nodes_that_meet_once_and_in_order_and_fails_what_a_failure_reaches) {
  std::mt19937 random(25);
  const steps_of_all made = random_steps(400, random);
  made_graph plain(made.nodes, made.edges), g(made.nodes, made.edges);
  let_nodes_meet(g.graph);
  ASSERT_GT(g.graph.meetings.size(), 100u);
  std::vector<bool> fails(made.nodes);
  for (std::size_t n = 0; n < made.nodes; ++n) fails[n] = random() % 400 == 0;
  const auto does_fail = [&](std::uint32_t n) { return fails[n]; };
  run_alone(plain.graph, does_fail);
  run_with_helpers(g, does_fail);
  std::size_t poisoned = 0;
  for (std::size_t n = 0; n < made.nodes; ++n) {
    poisoned += plain.graph.nodes[n].poisoned.load() ? 1u : 0u;
    ASSERT_EQ(g.graph.nodes[n].poisoned.load(), plain.graph.nodes[n].poisoned.load()) << "node " << n;
  }
  EXPECT_GT(poisoned, 0u);
  EXPECT_LT(poisoned, made.nodes - 100u);
}

// Nodes that a fork releases, and those that a thread holds while its body is long, are anybody's: the old way was to
// keep half.
TEST(graph_run, leaves_all_but_the_next_node_to_whoever_has_none) {
  constexpr std::uint32_t width = 8;
  std::vector<edge> edges;
  for (std::uint32_t n = 1; n <= width; ++n) edges.push_back({0, n, true});
  made_graph g(width + 1, edges);
  graph_run run(g.graph, width);
  std::vector<graph_run::hand*> hands;
  for (std::uint32_t i = 0; i < width; ++i) hands.push_back(&run.take_hand());
  std::uint32_t n = 0;
  ASSERT_TRUE(run.next(*hands[0], n, patience));
  EXPECT_EQ(run.finished(*hands[0], n, true, wake_ticks), graph_run::wake_hint::nodes_for_others);
  EXPECT_TRUE(run.has_shared());
  std::vector<bool> given(width + 1);
  for (graph_run::hand* h : hands) {  // nobody ends one: each gets one all the same
    ASSERT_TRUE(run.next(*h, n, patience));
    EXPECT_FALSE(given[n]);
    given[n] = true;
  }
  EXPECT_FALSE(run.has_shared());
}

TEST(graph_run, holds_any_number_of_successors) {
  constexpr std::uint32_t width = 500;  // more than a hand has room for
  std::vector<edge> edges;
  for (std::uint32_t n = 1; n <= width; ++n) edges.push_back({0, n, true});
  made_graph g(width + 1, edges);
  const auto order = run_alone(g.graph, [](auto) { return false; });
  EXPECT_EQ(order.size(), width + 1u);
}

TEST(graph_run, asks_for_a_thread_where_the_work_is_worth_one_and_nobody_looks) {
  std::vector<edge> edges;
  for (std::uint32_t n = 1; n <= 4; ++n) edges.push_back({0, n, true});
  made_graph g(5, edges);
  const auto ask = [&](float mean, float wake) {
    g.graph.node_ticks = mean;
    graph_run run(g.graph, 1);
    graph_run::hand& h = run.take_hand();
    std::uint32_t n = 0;
    EXPECT_TRUE(run.next(h, n, patience));
    const auto told = run.finished(h, n, true, wake);
    while (run.next(h, n, 0)) run.finished(h, n, true, wake);
    run.give_hand(h);
    return told == graph_run::wake_hint::nodes_for_others;
  };
  EXPECT_TRUE(ask(0, 1e6f)) << "unknown times are worth a look";
  EXPECT_FALSE(ask(100, 301)) << "three nodes of 100 ticks";
  EXPECT_TRUE(ask(100, 299));
}

// A thread was called as the run began, for its other root, and has come; then a node makes two ready.
TEST(graph_run, asks_for_a_thread_again_as_soon_as_the_one_that_was_called_has_come) {
  made_graph g(4, {{1, 2, true}, {1, 3, true}});
  for (const bool has_come : {false, true}) {
    graph_run run(g.graph, 2);
    run.note_called(1);
    graph_run::hand& owner = run.take_hand();
    graph_run::hand& other = run.take_hand();
    if (has_come) run.join();
    std::uint32_t n = 0;
    ASSERT_TRUE(run.next(owner, n, 0));
    ASSERT_TRUE(run.next(other, n, 0));
    ASSERT_EQ(n, 1u);
    constexpr float an_hour = 1e13f;  // ticks
    EXPECT_EQ(run.finished(other, n, true, an_hour) == graph_run::wake_hint::nodes_for_others, has_come);
    if (has_come) run.leave();
  }
}

// One node makes eight ready. The thread that has run it takes one; one that has come calls those that are missing.
TEST(graph_run, a_thread_that_has_come_calls_those_that_are_missing) {
  std::vector<edge> edges;
  for (std::uint32_t to = 1; to <= 8; ++to) edges.push_back({0, to, true});
  made_graph g(9, edges);
  graph_run run(g.graph, 9);
  graph_run::hand& owner = run.take_hand();
  std::uint32_t n = 0;
  ASSERT_TRUE(run.next(owner, n, patience));
  run.finished(owner, n, true, wake_ticks);
  ASSERT_TRUE(run.next(owner, n, patience));
  constexpr float an_hour = 1e13f;  // ticks: those that were called are on their way
  graph_run::hand& first = run.take_hand();
  run.join();
  run.begin_look();
  EXPECT_EQ(run.call_more(an_hour, 100), 6u) << "seven nodes are left, of which it takes one";
  EXPECT_EQ(run.call_more(an_hour, 100), 0u) << "they have been called";
  graph_run::hand& second = run.take_hand();
  run.join();
  run.begin_look();
  EXPECT_EQ(run.call_more(an_hour, 100), 0u) << "five are still coming";
  run.end_look();
  ASSERT_TRUE(run.next(second, n, patience));
  EXPECT_EQ(run.call_more(an_hour, 100), 0u);
  run.note_called(0);  // none of them has come
  EXPECT_EQ(run.call_more(an_hour, 3), 3u) << "as many as there may be";
  EXPECT_EQ(run.call_more(an_hour, 100), 2u) << "six nodes, of which one is this thread's";
  run.end_look();
  ASSERT_TRUE(run.next(first, n, patience));
  run.note_called(0);
  g.graph.node_ticks.store(2);
  EXPECT_EQ(run.call_more(5, 100), 2u) << "five nodes of two ticks are worth two wake-ups of five";
  run.note_called(0);
  EXPECT_EQ(run.call_more(11, 100), 0u) << "and none of eleven";
  run.leave();
  run.leave();
}

// Bodies that wait inside keep their threads' hands, and there may be any number of them.
TEST(graph_run, has_hands_for_any_number_of_threads) {
  made_graph g(6, {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}});
  graph_run run(g.graph, 2);
  std::vector<graph_run::hand*> hands;
  for (int i = 0; i < 5; ++i) hands.push_back(&run.take_hand());
  std::uint32_t n = 0;
  ASSERT_TRUE(run.next(*hands[4], n, 0));  // one whose ring nobody sees
  run.finished(*hands[4], n, true, wake_ticks);
  for (graph_run::hand* h : hands) EXPECT_TRUE(run.next(*h, n, 0)) << "all at once";
  for (graph_run::hand* h : hands) run.give_hand(*h);
}

TEST(graph_run, asks_for_a_thread_for_each_that_comes_from_elsewhere_beyond_those_that_look) {
  made_graph g(3, {});
  for (replay_node& n : g.graph.nodes) n.initial = 1;
  g.graph.roots.clear();
  graph_run run(g.graph, 2);
  graph_run::hand& hand = run.take_hand();
  EXPECT_FALSE(run.is_awaited());
  EXPECT_TRUE(run.arrive(0, true)) << "nobody looks";
  std::uint32_t n = 7;
  ASSERT_TRUE(run.next(hand, n, 0));
  EXPECT_EQ(n, 0u);
  run.finished(hand, n, true, wake_ticks);
  run.begin_look();
  EXPECT_TRUE(run.is_awaited());
  EXPECT_FALSE(run.arrive(1, true)) << "the thread that looks comes for it";
  EXPECT_TRUE(run.arrive(2, true)) << "and not for this one";
  run.end_look();
  for (std::uint32_t expected : {1u, 2u}) {
    ASSERT_TRUE(run.next(hand, n, 0));
    EXPECT_EQ(n, expected);
    run.finished(hand, n, true, wake_ticks);
  }
  EXPECT_FALSE(run.next(hand, n, 0));
  EXPECT_TRUE(run.is_over());
}

TEST(graph_run, lays_out_what_a_thread_holds) {
  made_graph g(4, {{0, 1}, {0, 2}, {0, 3}});
  graph_run run(g.graph, 2);
  graph_run::hand &first = run.take_hand(), &second = run.take_hand();
  std::uint32_t n = 0;
  ASSERT_TRUE(run.next(first, n, patience));
  EXPECT_FALSE(run.lay_out(first)) << "it holds none that it has not begun";
  run.finished(first, n, true, wake_ticks);
  EXPECT_TRUE(run.lay_out(first));
  for (std::uint32_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(run.next(second, n, 0));
    run.finished(second, n, true, wake_ticks);
  }
  run.give_hand(second);
  EXPECT_TRUE(run.is_over());
}

}  // namespace
