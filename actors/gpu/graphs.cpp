// What this file is for: runs of recorded graphs on a device: kernels in one row; one call once they come again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "actors/execution/task_errors.hpp"
#include "actors/gpu/actor.hpp"

namespace troupe::detail {

// Runs `f` as one recorded call: an error in it names that call.
template <class F>
void gpu_actor::as_call(const task_record& call, F&& f) const {
  try {
    f();
  } catch (const devices::cannot_run&) {
    std::rethrow_exception(task_error(call, options_.facts.name, 1, std::current_exception(), errc::no_executor));
  } catch (const error& e) {
    if (is_fatal(e)) throw;
    std::rethrow_exception(task_error(call, options_.facts.name, 1, std::current_exception(), e.code()));
  } catch (...) {
    std::rethrow_exception(task_error(call, options_.facts.name, 1, std::current_exception()));
  }
}

// In program order on one lane, so nothing has to be waited for in between.
void gpu_actor::launch_nodes(recorded_graph& g, job& j) {
  auto calls = std::make_shared<std::vector<std::uint64_t>>();
  calls->reserve(g.nodes.size());
  for (const replay_node& n : g.nodes) {
    if (n.task->kind == task_kind::recorded)
      as_call(*n.task, [&] {
        memory_.show_call(*n.task, j, node_);
        launch_text(*n.task, node_, j.route.lane);
      });
    calls->push_back(device_->launched());
  }
  j.launches.of_calls = std::move(calls);
}

// The first, of the launches that the calls have made.
std::exception_ptr gpu_actor::complaint_of_call(const job& j) {
  const auto& graph = static_cast<const recorded_graph&>(*static_cast<recorded_graph*>(j.task->extra->payload.get()));
  std::exception_ptr first;
  std::uint64_t before = j.launches.first - 1;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::uint64_t after = (*j.launches.of_calls)[i];
    const std::string said = after == before ? std::string() : device_->complaint(before + 1, after);
    before = after;
    if (said.empty() || first) continue;
    const error why(errc::out_of_bounds, said);
    first = task_error(*graph.nodes[i].task, options_.facts.name, 1, std::make_exception_ptr(why), why.code());
  }
  return first;
}

// Scalars never change from run to run; memory does when tiles have left and come back, or the graph was run elsewhere.
void gpu_actor::launch_graph(job& j) {
  const auto graph = std::static_pointer_cast<recorded_graph>(j.task->extra->payload);
  graph_captures::run& last = captures_.last_run(graph, [this](devices::capture_id c) { device_->drop(c); });
  std::vector<void*> memory;
  if (j.windows) memory = j.windows->memory;
  for (const job::held& h : j.copies) memory.push_back(h.copy->memory);
  const bool same = memory == last.memory;
  if (!same) {
    if (last.captured) device_->drop(*last.captured);
    last.captured.reset();
    last.memory.reset();
    for (const replay_node& n : graph->nodes)  // nothing may be compiled in between
      if (n.task->kind == task_kind::recorded) as_call(*n.task, [&] { (void)loaded(*n.task->kernel); });
  }
  j.launched = true;  // whatever happens from here on, what it writes is not what it was
  if (!same || !device_->facts().captures) {
    launch_nodes(*graph, j);
    last.memory = std::move(memory);
    return;
  }
  if (!last.captured) {
    device_->begin_capture(j.route.lane);
    try {
      launch_nodes(*graph, j);
    } catch (...) {
      device_->drop(device_->end_capture(j.route.lane));
      throw;
    }
    last.captured = device_->end_capture(j.route.lane);
    last.first_launch = j.launches.first;
    last.last_launch = device_->launched();
    last.calls = j.launches.of_calls;
  }
  j.launches.first = last.first_launch;
  j.launches.last = last.last_launch;
  j.launches.of_calls = last.calls;
  device_->replay(j.route.lane, *last.captured);
  gpu_counters::add(counters_.replays);
}

}  // namespace troupe::detail
