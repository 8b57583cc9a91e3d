// What this file is for: runs of recorded graphs on a device: their kernels in one row, and once they come again as one call.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "actors/gpu_actor.hpp"

namespace troupe::detail {

// In program order on one lane, so nothing has to be waited for in between.
void gpu_actor::launch_nodes(recorded_graph& g, int lane) {
  for (const replay_node& n : g.nodes) {
    memory_.view_tiles(*n.task, node_);
    launch_text(*n.task, node_, lane);
  }
}

// Scalars never change from run to run; memory does when tiles have left and come back, or the graph was run elsewhere.
void gpu_actor::launch_graph(job& j) {
  const auto graph = std::static_pointer_cast<recorded_graph>(j.task->extra->payload);
  run_before& last = last_run_of(graph);
  const bool same = std::equal(j.copies.begin(), j.copies.end(), last.memory.begin(), last.memory.end(),
                               [](const job::held& h, const void* before) { return h.copy->memory == before; });
  if (!same) {
    if (last.captured) device_->drop(*last.captured);
    last.captured.reset();
    last.memory.clear();
    for (const job::held& h : j.copies) last.memory.push_back(h.copy->memory);
    for (const replay_node& n : graph->nodes) (void)loaded(*n.task->kernel);  // nothing may be compiled in between
  }
  j.launched = true;  // whatever happens from here on, what it writes is not what it was
  if (!same || !device_->facts().captures) {
    launch_nodes(*graph, j.lane);
    return;
  }
  if (!last.captured) {
    device_->begin_capture(j.lane);
    try {
      launch_nodes(*graph, j.lane);
    } catch (...) {
      device_->drop(device_->end_capture(j.lane));
      throw;
    }
    last.captured = device_->end_capture(j.lane);
    last.first_launch = j.first_launch;
    last.last_launch = device_->launched();
  }
  j.first_launch = last.first_launch;
  j.last_launch = last.last_launch;
  device_->replay(j.lane, *last.captured);
  replays_.fetch_add(1, std::memory_order_relaxed);
}

gpu_actor::run_before& gpu_actor::last_run_of(const std::shared_ptr<recorded_graph>& g) {
  run_before& last = runs_[g.get()];
  if (last.graph.lock() == g) return last;
  // A new one: those that are gone take their captures along.
  std::erase_if(runs_, [&](auto& known) {
    if (!known.second.graph.expired() || known.first == g.get()) return false;
    if (known.second.captured) device_->drop(*known.second.captured);
    return true;
  });
  if (last.captured) device_->drop(*last.captured);
  last = {g, {}, {}};
  return last;
}

}  // namespace troupe::detail
