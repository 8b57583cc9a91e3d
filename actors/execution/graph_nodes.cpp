// What this file is for: counters and edges of a graph's nodes, from the order of its tasks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/graph_nodes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>

#include "actors/logic/data/reduction.hpp"
#include "actors/memory/runtime_state.hpp"

namespace troupe::detail {

void make_nodes(recorded_graph& g, std::span<task_record* const> tasks, logic::task_graph& graph) {
  for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i]->id = i;
  std::vector<replay_node> nodes(tasks.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    replay_node& n = nodes[i];
    n.task = tasks[i];
    n.initial = n.task->pending - 1;
    if (g.part && g.part->is_receiver(*n.task)) ++n.initial;  // for what comes
    n.first = static_cast<std::uint32_t>(g.successors.size());
    graph.each_successor(*n.task, [&](task_record& next, bool data) {
      g.successors.push_back(static_cast<std::uint32_t>(next.id) | (data ? recorded_graph::data_bit : 0));
    });
    n.count = static_cast<std::uint32_t>(g.successors.size()) - n.first;
    if (n.initial == 0) g.roots.push_back(static_cast<std::uint32_t>(i));
    graph.forget_successors(*n.task);
    if (n.task->kind == task_kind::combine) g.reductions.push_back(n.task->accesses[0].where->partials);
  }
  for (task_record* t : tasks) t->id = t->sequence;
  g.nodes = std::move(nodes);
}

namespace {
// True if so many nodes are to meet before they count so many successors down.
bool is_worth_meeting(std::size_t nodes, std::size_t successors) {
  return nodes * successors >= 2 * (nodes + successors);
}
// With fewer successors it is never worth it.
constexpr std::uint32_t least_successors = 3;

// Finds nodes that have not met and have the same successors but for the last `apart` of each; adds them to `meetings`.
void find_meetings(const recorded_graph& g, std::uint32_t apart, std::vector<bool>& have_met,
                   std::vector<std::vector<std::uint32_t>>& meetings) {
  const auto edges_of = [&](std::uint32_t node) {
    const replay_node& n = g.nodes[node];
    return std::span(g.successors).subspan(n.first, n.count - apart);
  };
  struct candidate {
    std::uint64_t hash;  // of its successors
    std::uint32_t node;
  };
  std::vector<candidate> all;
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
    if (have_met[i] || g.nodes[i].count < least_successors + apart) continue;
    const auto edges = edges_of(i);
    std::uint64_t hash = edges.size();
    for (const std::uint32_t edge : edges) hash = (hash ^ edge) * 0x9e37'79b9'7f4a'7c15u;
    all.push_back({hash, i});
  }
  std::ranges::sort(all, {}, [](const candidate& c) { return std::pair(c.hash, c.node); });
  std::vector<std::uint32_t> alike;
  for (auto begin = all.begin(), end = begin; begin != all.end(); begin = end) {
    end = std::find_if(begin, all.end(), [&](const candidate& c) { return c.hash != begin->hash; });
    const auto edges = edges_of(begin->node);
    alike.clear();
    for (auto c = begin; c != end; ++c)
      if (std::ranges::equal(edges_of(c->node), edges)) alike.push_back(c->node);
    if (!is_worth_meeting(alike.size(), edges.size())) continue;
    for (const std::uint32_t n : alike) have_met[n] = true;
    meetings.push_back(alike);
  }
}
}  // namespace

void let_nodes_meet(recorded_graph& g) {
  std::vector<bool> have_met(g.nodes.size());
  std::vector<std::vector<std::uint32_t>> meetings;
  find_meetings(g, 0, have_met, meetings);
  const std::size_t whole = meetings.size();
  // The last is mostly the next task that changes what this one has changed, a step further on.
  find_meetings(g, 1, have_met, meetings);
  g.meetings = std::vector<node_meeting>(meetings.size());
  for (std::uint32_t i = 0; i < meetings.size(); ++i) {
    const replay_node& first = g.nodes[meetings[i][0]];
    node_meeting& m = g.meetings[i];
    m.initial = static_cast<std::int32_t>(meetings[i].size());
    m.first = first.first;
    m.count = first.count - (i < whole ? 0 : 1);
    for (const std::uint32_t edge : std::span(g.successors).subspan(m.first, m.count))
      g.nodes[edge & ~recorded_graph::data_bit].initial -= m.initial - 1;
    for (const std::uint32_t n : meetings[i]) {
      g.nodes[n].meeting = i;
      g.nodes[n].first += m.count;
      g.nodes[n].count -= m.count;
    }
  }
}

std::shared_ptr<recorded_graph> build_part(runtime_state& rt, std::unique_ptr<graph_part> part,
                                           std::vector<part_step> steps, logic::recorded_tiles& tiles) {
  nothing_runs around(rt);
  logic::dependencies deps(around, &tiles);
  auto g = std::make_shared<recorded_graph>();
  g->rt = &rt;
  rt.retain();
  g->part = std::move(part);
  std::vector<task_record*> tasks, combines;
  tasks.reserve(steps.size());
  try {
    for (const part_step& s : steps) {
      deps.order(*s.task, combines);
      for (const part_step::link& l : s.after) {
        task_record* const before = steps.at(l.step).task;
        deps.graph().link({before, before->sequence}, *s.task, l.data);
      }
      tasks.push_back(s.task);
    }
    deps.combine_recorded(combines);
    tasks.insert(tasks.end(), combines.begin(), combines.end());
    make_nodes(*g, tasks, deps.graph());
    let_nodes_meet(*g);
    g->part->take_nodes(*g);
  } catch (...) {
    if (g->nodes.empty()) {  // else the graph releases them
      for (const part_step& s : steps) release(s.task);
      for (task_record* t : combines) {
        delete t->accesses[0].where->partials;
        release(t);
      }
    }
    throw;
  }
  return g;
}

}  // namespace troupe::detail
