// What this file is for: turns and edges between tasks reach the trace, each once and on placement's lane.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/graph_trace.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "loose_graph.hpp"

namespace {

using namespace test;
using troupe::access_mode;
using edge = std::pair<std::uint64_t, std::uint64_t>;

struct kept_blocks final : trace_sink {
  void take(trace_block&& b) override { blocks.push_back(std::move(b)); }
  std::vector<edge> edges() const {
    std::vector<edge> all;
    for (const trace_block& b : blocks)
      for (const trace_edge& e : b.edges) all.emplace_back(e.from, e.to);
    return all;
  }
  std::vector<trace_block> blocks;
};

TEST(graph_trace, is_off_and_silent_until_it_is_opened) {
  loose_graph g;
  graph_trace trace;
  EXPECT_FALSE(trace.is_on());
  array_core* const a = g.array("a");
  g.ordered({{a, access_mode::write}});
  g.ordered({{a, access_mode::read}});
  trace.add_found_edges();
  trace.flush();
  kept_blocks sink;
  trace.open(sink, 3, g.order.graph());
  EXPECT_TRUE(trace.is_on());
  trace.add_found_edges();
  trace.flush();
  EXPECT_TRUE(sink.blocks.empty()) << "edges from before";
}

TEST(graph_trace, writes_the_edges_that_ordering_finds_each_once) {
  loose_graph g;
  kept_blocks sink;
  graph_trace trace;
  trace.open(sink, 3, g.order.graph());
  array_core* const a = g.array("a");
  array_core* const b = g.array("b");
  task_record* const first = g.ordered({{a, access_mode::write}});
  task_record* const reader = g.ordered({{a, access_mode::read}, {b, access_mode::write}});
  trace.add_found_edges();
  task_record* const last = g.ordered({{b, access_mode::read}});
  trace.add_found_edges();
  trace.add_found_edges();  // none were found since
  trace.flush();
  EXPECT_EQ(sink.edges(), (std::vector<edge>{{first->sequence, reader->sequence}, {reader->sequence, last->sequence}}));
}

TEST(graph_trace, names_its_lane_and_its_turns) {
  loose_graph g;
  kept_blocks sink;
  graph_trace trace;
  trace.open(sink, 3, g.order.graph());
  trace.add_turn(100, 250);
  trace.flush();
  ASSERT_EQ(sink.blocks.size(), 1u);
  EXPECT_EQ(sink.blocks[0].lane, 3);
  EXPECT_EQ(sink.blocks[0].lane_name, "placement");
  ASSERT_EQ(sink.blocks[0].events.size(), 1u);
  const trace_event& turn = sink.blocks[0].events[0];
  EXPECT_EQ(turn.task, 0u);
  EXPECT_EQ(turn.begin, 100u);
  EXPECT_EQ(turn.end, 250u);
  EXPECT_EQ(std::string(turn.name.data()), "turn");
  trace.flush();
  EXPECT_EQ(sink.blocks.size(), 1u) << "nothing is left to write";
}

TEST(graph_trace, writes_the_edges_from_chunks_when_their_join_is_ordered) {
  loose_graph g;
  kept_blocks sink;
  graph_trace trace;
  trace.open(sink, 0, g.order.graph());
  array_core* const a = g.array("a");
  array_core* const b = g.array("b");
  task_record* const join = g.task({});
  join->kind = task_kind::join;
  task_record* const one = g.task({{a, access_mode::write}});
  task_record* const other = g.task({{b, access_mode::write}});
  for (task_record* t : {one, other}) {
    add_join_edge(*t, *join);
    g.in_order(t);
    trace.note_ordered(*t);
  }
  trace.flush();
  EXPECT_TRUE(sink.edges().empty());
  g.in_order(join);
  trace.note_ordered(*join);
  trace.flush();
  EXPECT_EQ(sink.edges(), (std::vector<edge>{{one->sequence, join->sequence}, {other->sequence, join->sequence}}));
  trace.note_ordered(*join);
  trace.flush();
  EXPECT_EQ(sink.edges().size(), 2u) << "each once";
}

}  // namespace
