// What this file is for: recorded tasks in program order become the nodes and edges of a graph.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "actors/execution/graph_part.hpp"
#include "actors/execution/graph_run.hpp"
#include "actors/logic/data/dependencies.hpp"
#include "actors/memory/internal_tasks.hpp"

namespace troupe::detail {

/// Stands in for placement while a graph is recorded: nothing runs, so nothing can fail.
struct nothing_runs final : logic::dependencies::callbacks {
  explicit nothing_runs(runtime_state& s) : state(s) {}
  runtime_state& state;
  task_record* make_combine(array_core& a, reduction& r) override { return detail::make_combine(state, a, r); }
  void fail(task_record&, std::exception_ptr, bool) override {}
};

/// Makes the nodes and edges of tasks that have been ordered. The graph owns the tasks from then on, and their records
/// know nothing of each other any more.
void make_nodes(recorded_graph&, std::span<task_record* const> tasks, logic::task_graph&);

/// Lets nodes meet that have the same successors but for the last, where that saves at least half of the counting. To
/// be called once, after make_nodes.
void let_nodes_meet(recorded_graph&);

/// A step of a part, in program order: a call, or a node that sends or takes a crossing.
struct part_step {
  task_record* task = nullptr;
  struct link {
    std::uint32_t step = 0;
    bool data = false;  // it fails if that step does
  };
  std::vector<link> after{};  // earlier steps that it waits for, beside those of its accesses
};

/// Orders the steps of a part and makes its graph of them. Takes over the tasks. Returns the states of the shadows'
/// tiles at the end of a run in `tiles`.
std::shared_ptr<recorded_graph> build_part(runtime_state&, std::unique_ptr<graph_part>, std::vector<part_step>,
                                           logic::recorded_tiles& tiles);

}  // namespace troupe::detail
