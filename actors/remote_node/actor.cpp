// What this file is for: steps of a node's actor that its other files share: frames sent, jobs and tasks that end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/actor.hpp"

#include "actors/execution/task_errors.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/protocol/chaining.hpp"

namespace troupe::detail {

node_actor::outgoing::outgoing(report_batch r, std::vector<pushes::push> p, lends::news l)
    : report(std::move(r)), to_push(std::move(p)), lent(std::move(l)) {}
node_actor::outgoing::~outgoing() = default;

node_actor::outgoing node_actor::take_outgoing() {
  untold_.fetch_add(1);
  return {report_.take(), pushes_.take(), lends_.take()};
}

void node_actor::flush() {
  if (frame_.is_empty()) return;
  const net::writer frame = frame_.take();
  occupant_.send(frame);  // if the session has ended, lose() is called
}

job& node_actor::take_job(task_record& t) {
  job& j = jobs_.take(t);
  rt_.on_nodes.fetch_add(1, std::memory_order_relaxed);
  return j;
}

void node_actor::give_job(job& j) {
  jobs_.give(j);
  rt_.on_nodes.fetch_sub(1, std::memory_order_relaxed);
}

void node_actor::end_internal(task_record& t, std::exception_ptr why) {
  t.error = std::move(why);
  fulfil(t, board_);
  report_.done.push_back(&t);
}

// Returns a task that was claimed: it waits again, and placement decides anew.
void node_actor::come_back(task_record& t) {
  t.phase.fetch_and(~(phase_mask | epoch_mask), std::memory_order_acq_rel);
  report_.returned.push_back(&t);
}

std::string node_actor::peer_name() const { return facts_.shown_name(); }

std::exception_ptr node_actor::lost_with(const task_record& t, const std::exception_ptr& why) const {
  const access& x = t.accesses[0];
  return lost_copy_error(*x.array, x.tile, peer_name(), why);
}

}  // namespace troupe::detail
