// What this file is for: counters and edges of a graph's nodes, from the order of its tasks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/graph_nodes.hpp"

#include <utility>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>

#include "actors/memory/runtime_state.hpp"

namespace troupe::detail {

void make_nodes(recorded_graph& g, std::span<task_record* const> tasks, logic::dependencies& deps) {
  for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i]->id = i;
  std::vector<replay_node> nodes(tasks.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    replay_node& n = nodes[i];
    n.task = tasks[i];
    n.initial = n.task->pending - 1;
    if (g.part && g.part->is_receiver(*n.task)) ++n.initial;  // for what comes
    n.first = static_cast<std::uint32_t>(g.successors.size());
    deps.each_successor(*n.task, [&](task_record& next, bool data) {
      g.successors.push_back(static_cast<std::uint32_t>(next.id) | (data ? recorded_graph::data_bit : 0));
    });
    n.count = static_cast<std::uint32_t>(g.successors.size()) - n.first;
    if (n.initial == 0) g.roots.push_back(static_cast<std::uint32_t>(i));
    deps.forget_successors(*n.task);
  }
  for (task_record* t : tasks) t->id = t->sequence;
  g.nodes = std::move(nodes);
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
        deps.link({before, before->sequence}, *s.task, l.data);
      }
      tasks.push_back(s.task);
    }
    make_nodes(*g, tasks, deps);
    g->part->take_nodes(*g);
  } catch (...) {
    if (g->nodes.empty())  // else the graph releases them
      for (const part_step& s : steps) release(s.task);
    throw;
  }
  return g;
}

}  // namespace troupe::detail
