// What this file is for: a device that fails: what is placed again, what is lost, whether it is opened anew.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/task_errors.hpp"
#include "actors/gpu/actor.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/behind.hpp"

namespace troupe::detail {

namespace {
// A device that fails is opened again so often; a task is tried so often in all.
constexpr int restarts_max = 3, attempts_max = 3;
}  // namespace

// The device can do no more, and its memory is gone. What was under way is placed again where that is harmless; data
// with a copy elsewhere is read from there. Then the device is opened anew, a few times.
void gpu_actor::fail_device(std::exception_ptr why) {
  memory_.break_loans();
  memory_.use(nullptr);
  states_.clear();
  device_.reset();  // from here on nothing touches the host's memory
  kernels_.clear();
  requests_.forget_ready();
  captures_.forget();
  clocks_.reset();
  ++failures_;
  bool for_good = failures_ > restarts_max || stopping_.load();
  if (!for_good) {
    try {
      device_ = options_.open();
      device_->listen([this] { ring(); });
    } catch (...) {
      why = std::current_exception();
      for_good = true;
    }
  }
  if (for_good) broken_ = why;
  lanes_.use(device_.get(), lanes_.size());
  memory_.use(device_.get());

  std::vector<std::pair<array_core*, std::uint32_t>> lost;
  memory_.each([&](const logic::replica& r) {
    if (r.dirty) lost.emplace_back(r.array, r.tile);
  });
  if (!done_.empty()) placement_.report_done(done_, this);  // what they wrote is among what is lost
  done_.clear();
  placement_.report_failure(*this, lost, why, for_good);

  std::vector<task_record*> under_way, returned;
  for (const job& j : jobs_)
    if (j.task && !is_internal(j.task->kind)) under_way.push_back(j.task);
  placement_.make_extras(under_way);
  while (!jobs_.empty()) {
    job& j = jobs_.front();
    task_record* const t = j.task;
    if (t && !is_internal(t->kind)) j.host.roll_back();
    gpu_memory::end_loans(j, false);
    j.copies.clear();
    j.sources.clear();
    for (const job::part& p : j.parts)
      if (p.staged) j.buffers.give_back(p.staged);
    j.parts.clear();
    j.for_routine.clear();
    j.updates.clear();
    const std::uint64_t begin = j.begin;
    const bool counted = j.error != nullptr;
    give_job(j);
    if (!t) continue;
    if (is_internal(t->kind)) {
      const access& x = t->accesses[0];
      end_task(*t,
               std::make_exception_ptr(error(
                   errc::data_lost, "array '" + x.array->spec.name + "', tile " + std::to_string(x.tile) +
                                        ": its only copy went with " + options_.facts.name + ": " + text_of(why))),
               begin);
    } else if (may_run_again(*t)) {
      if (!counted) ++setbacks_;
      t->phase.fetch_and(~(phase_mask | behind_mask), std::memory_order_acq_rel);  // waiting again
      returned.push_back(t);
    } else {
      if (!counted) ++setbacks_;
      claim(*t);
      end_task(*t, why, begin);
    }
  }
  memory_.forget_all();
  {
    // What waits here was sent for data that was here.
    std::lock_guard hold(lock_);
    while (task_record* t = queue_.pop()) {
      ++setbacks_;
      returned.push_back(t);
    }
    queued_count_.store(0, std::memory_order_relaxed);
  }
  placement_.report_returned(returned);
}

// Whoever has been under way in several failures may be what causes them. Placement has made room to count that.
bool gpu_actor::may_run_again(task_record& t) {
  if (t.kernel->repeat == purity::once) return false;
  return t.extra->attempt.fetch_add(1, std::memory_order_relaxed) < attempts_max;
}

}  // namespace troupe::detail
