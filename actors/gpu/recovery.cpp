// What this file is for: a device that fails: what is placed again, what is lost, whether it is opened anew.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/task_errors.hpp"
#include "actors/gpu/actor.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/chaining.hpp"
#include "actors/protocol/report_batch.hpp"

namespace troupe::detail {

namespace {
// A task that was under way in so many failures is not run again.
constexpr int attempts_max = 3;
}  // namespace

// Ends a job that was under way on a device that has failed. Returns its task if that may run again, else null.
task_record* gpu_actor::end_failed_job(job& j, const std::exception_ptr& why) {
  task_record* const t = j.task;
  if (t && !is_internal(t->kind)) j.host.roll_back();
  gpu_memory::end_loans(j, false);
  j.copies.clear();
  j.sources.clear();
  for (const job::part& p : j.parts)
    if (p.staged) j.buffers.give_back(p.staged);
  j.parts.clear();
  j.leave_windows();
  j.for_routine.clear();
  j.updates.clear();
  const std::uint64_t begin = j.begin;
  const bool counted = j.failure.error != nullptr;
  jobs_.give(j);
  if (!t) return nullptr;
  if (is_internal(t->kind)) {
    const access& x = t->accesses[0];
    end_task(*t, lost_copy_error(*x.array, x.tile, options_.facts.name, why), begin);
    return nullptr;
  }
  if (!counted) ++failure_epoch_;
  if (may_run_again(*t)) {
    t->phase.fetch_and(~(phase_mask | epoch_mask), std::memory_order_acq_rel);  // waiting again
    return t;
  }
  claim(*t);
  end_task(*t, why, begin);
  return nullptr;
}

// Ends what was under way on a device that can do no more, and whose memory is gone: tasks are placed again where that
// is harmless; data with a copy elsewhere is read from there. Then the supervisor decides whether the device is opened
// anew; until it has, tasks wait in the queue.
void gpu_actor::fail_device(std::exception_ptr why) {
  memory_.break_loans();
  memory_.use(nullptr);
  kernels_.drop_handles();
  device_.reset();  // from here on nothing touches the host's memory
  kernels_.forget_loaded();
  requests_.forget_ready();
  captures_.forget();
  clocks_.reset();
  const bool for_good = stopping_.load();
  if (for_good)
    repair_.end_for_good(why);
  else
    repair_.begin(why);
  lanes_.use(nullptr, lanes_.size());

  report_batch failure;
  failure.done.swap(done_);
  failure.failed.emplace(report_batch::failure{{}, why, for_good});
  memory_.each([&](const logic::replica& r) {
    if (r.dirty) failure.failed->lost.emplace_back(r.array, r.tile);
  });
  for (const job& j : jobs_)
    if (j.task && !is_internal(j.task->kind)) failure.need_extra.push_back(j.task);
  placement_.report(*this, std::move(failure));

  report_batch after;
  while (!jobs_.empty())
    if (task_record* const t = end_failed_job(jobs_.front(), why)) after.returned.push_back(t);
  memory_.forget_all();
  for (task_record* t : mail_.take_calls()) {  // they were sent for data that was here
    ++failure_epoch_;
    after.returned.push_back(t);
  }
  placement_.report(*this, std::move(after));
  if (!for_good) tell_supervisor(why);
}

void gpu_actor::restart() {
  repair_.open_async(options_.facts.name, shared_from_this(), options_.open, [this] { mail_.alarm_bell().ring(); });
}

void gpu_actor::withdraw(std::exception_ptr why) {
  repair_.refuse(std::move(why));
  mail_.alarm_bell().ring();
}

// Takes the device that has been opened anew, or gives it up, once that has been decided; false if it has not.
bool gpu_actor::go_on_after_failure() {
  std::optional<gpu_repair::outcome> now = repair_.take(stopping_.load());
  if (!now) return false;
  if (now->error) {
    placement_.report_failure(*this, {}, now->error, true);
    return true;
  }
  device_ = std::move(now->device);
  device_->listen([this] { mail_.alarm_bell().ring(); });
  lanes_.use(device_.get(), lanes_.size());
  memory_.use(device_.get());
  return true;
}

// Returns true if a task may be placed again. One that has been under way in several failures may be their cause;
// placement has allocated the extra part of its record, in which they are counted.
bool gpu_actor::may_run_again(task_record& t) {
  if (t.kernel->repeat == purity::once) return false;
  return t.extra->attempt.fetch_add(1, std::memory_order_relaxed) < attempts_max;
}

}  // namespace troupe::detail
