// What this file is for: the end of a task on a device: what is counted, what it fails with, who is told.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "actors/execution/task_errors.hpp"
#include "actors/gpu/actor.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/report_batch.hpp"
#include "actors/protocol/task_name.hpp"

namespace troupe::detail {

void gpu_actor::end_task(task_record& t, std::exception_ptr error, std::uint64_t begin, int attempts,
                         std::optional<errc> code) {
  const std::uint64_t end = ticks();
  if (!is_internal(t.kind)) {
    const double ns = time_.ns_of(end - begin);
    gpu_counters::add(counters_.tasks, static_cast<std::uint64_t>(attempts));
    gpu_counters::add(counters_.failed, static_cast<std::uint64_t>(attempts - (error ? 0 : 1)));
    if (t.extra && t.extra->listener) t.extra->bodies += attempts;
    gpu_counters::add(counters_.busy_ns, static_cast<std::uint64_t>(ns));
    t.measured_ns = std::max(1.0f, static_cast<float>(ns));
    if (error) {
      t.error = t.kind == task_kind::graph_run ? run_error(t, error) : error;
      if (t.error == error)  // no call's
        t.error = task_error(t, options_.facts.name, attempts, error, code ? *code : failure_code(error));
    }
    if (!t.body_gone) drop_body(t, options_.facts.name);
  } else {
    t.error = error;
  }
  if (trace_.on()) trace_.add(t.id, begin, end, name_of(t).c_str());
  fulfil(t, board_);
  done_.push_back(&t);
}

// Ends a task that another thread has claimed.
void gpu_actor::end_cancelled(task_record& t) {
  ++failure_epoch_;
  await_fulfilled(t);
  done_.push_back(&t);
}

// Tells placement of the tasks that have ended; true if there were any.
bool gpu_actor::report_done_tasks() {
  if (done_.empty()) return false;
  placement_.report_done(done_, this);
  done_.clear();
  return true;
}

// Returns a task that is not to come here again, with the error that it fails with if nobody else can take it.
void gpu_actor::return_refused(task_record& t, std::exception_ptr why) {
  report_batch all;
  all.returned.push_back(&t);
  all.refusals.emplace_back(&t, std::move(why));
  placement_.report(*this, std::move(all));
}

// The thread that asks is among those that are active.
bool gpu_actor::nobody_else_works() const { return placement_.active() <= 1; }

}  // namespace troupe::detail
