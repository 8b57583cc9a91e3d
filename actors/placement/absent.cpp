// What this file is for: tasks that no executor here may run: they wait for a node to join where their options say so.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   assign, admit: no executor --> absent_ --a node has joined--> admit
//                                          --executor_wait has passed, or cancelled--> retired
#include <algorithm>
#include <utility>

#include <troupe/error.hpp>

#include "actors/execution/graph_part.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/logic/scheduling/device_pool.hpp"
#include "actors/placement/placement.hpp"

namespace troupe::detail {

namespace {
// No task waits longer than ten years.
constexpr double wait_max_ns = 3e17;
}  // namespace

// Resolves the scope of a task again if executors have changed: since then another node may have joined in a place, or
// one of the same name in another place. Executors that refused the task stay excluded. Tasks that hold devices run on
// cores of this node, and are left as they are.
void placement::look_up_nodes(task_record& t) {
  task_extra& e = *t.extra;
  const std::uint64_t changes = executor_changes.load(std::memory_order_acquire);
  if (e.resolved_at == changes) return;
  e.resolved_at = changes;
  if (!logic::may_name_nodes(e.options.where) || logic::asks_for_devices(e.options.resources)) return;
  const logic::executor_set found = logic::resolve(e.options.where, facts());
  for (const executor_facts& f : facts()) {
    if (f.kind != device_kind::node) continue;
    const bool refused = std::ranges::any_of(e.refused_by, [&](const auto& r) { return r.first == f.id; });
    e.executors.set(f.id, found.contains(f.id) && !refused);
  }
}

std::exception_ptr placement::nobody_left(const task_record& t) const {
  const std::string node = absent_.what_has_gone(t);  // empty: a device is gone
  const error left(errc::device_lost, "no executor that could run it is left" + node);
  return task_error(t, "", 0, std::make_exception_ptr(left), node.empty() ? left.code() : errc::task_failed);
}

// Returns the error of a part of a graph whose node is leaving, or has left.
std::exception_ptr placement::part_left(const task_record& t) const {
  std::string node;
  for (const executor_facts& f : facts())
    if (t.extra->executors.contains(f.id)) node = f.shown_name();
  const error left(errc::node_lost,
                   "node " + node + ", which is to run this part of the graph, is leaving or has left");
  return task_error(t, "", 0, std::make_exception_ptr(left), left.code());
}

std::exception_ptr placement::no_quantity(const task_record& t) const {
  std::string asks;
  for (const resource& r : t.extra->options.resources) asks += (asks.empty() ? "" : ", ") + r.name;
  return refused_error(
      t, errc::no_resource,
      "no node that is there and may run it has so much of what it asks (" + asks + ")" + absent_.what_has_gone(t));
}

void placement::end_of_wait(task_record& t, const std::exception_ptr& why) {
  if (!wait_for_node(t, why)) refuse(t, why);
}

// Puts a task that no executor can run into `absent_`, if it may wait for a node; else returns false. The wait begins
// now: the time that the task has waited for others before is not its node's absence. A task that was refused by
// executors that are here does not wait.
bool placement::wait_for_node(task_record& t, const std::exception_ptr& why) {
  if (!log_ || !t.extra || t.extra->options.executor_wait.count() <= 0 || t.extra->refusal || ending_.has_begun())
    return false;
  if (t.kind != task_kind::call || !t.kernel->portable || is_graph_part(t) ||
      !logic::may_name_nodes(t.extra->options.where))
    return false;
  admission_.finished(t);
  const std::uint64_t now = clock_.ticks();
  const double ns = std::chrono::duration<double, std::nano>(t.extra->options.executor_wait).count();
  const std::uint64_t due = now + static_cast<std::uint64_t>(std::min(ns, wait_max_ns) / clock_.ns_per_tick());
  if (!absent_.add(t, due, why)) return false;
  alarm_.ring_at(due, now, clock_.ns_per_tick());
  return true;
}

void placement::note_cancelled() {
  if (absent_.any()) alarm_.ring_now();
}

}  // namespace troupe::detail
