// What this file is for: tiles that pass between devices without the host, as the two actors see it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   placement --lend--> lender: opens the loan         placement --task with loans--> borrower: begins, copies, ends it
//
// All calls for a copy are the borrower's, in its own lane. The lender's memory stays while a loan is in use. See
// protocol/peer_loan.hpp; what a loan is to the memory of each of them is in loans.cpp.
#include <algorithm>

#include "actors/gpu/actor.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/chaining.hpp"
#include "actors/protocol/report_batch.hpp"

namespace troupe::detail {

gpu_actor::outcome gpu_actor::lend(task_record& t) {
  const access& x = t.accesses[0];
  if (memory_.is_coming(*x.array, x.tile)) return outcome::no_room;
  const std::uint64_t begin = ticks();
  claim(t);
  memory_.lend(t.extra->loans.front());
  end_task(t, nullptr, begin);
  return outcome::started;
}

// From a device that may have failed meanwhile: what came is known once the task has ended.
bool gpu_actor::is_being_copied(const access& x) const {
  for (const job& j : jobs_)
    for (const auto& loan : j.loans)
      if (loan->array == x.array && loan->tile == x.tile) return true;
  return false;
}

std::exception_ptr gpu_actor::why_rescued(const task_record& t) {
  return *static_cast<const std::exception_ptr*>(t.extra->payload.get());
}

void gpu_actor::trace_peers(memory_space from, std::uint64_t begin, std::uint64_t end) {
  if (!trace_.on()) return;
  for (const gpu_peer& p : options_.peers)
    if (p.space == from) trace_.add(0, begin, end, ("copy from " + p.name).c_str());
}

// Runs a job's task again that may have computed with bytes of a lender that had failed.
void gpu_actor::run_again(job& j) {
  task_record& t = *j.task;
  const std::uint64_t begin = j.begin;
  const auto lost = std::find_if(j.loans.begin(), j.loans.end(), [](const auto& loan) { return loan->is_broken(); });
  const error why(errc::device_failed, "array '" + (*lost)->array->spec.name + "', tile " +
                                           std::to_string((*lost)->tile) + ": the device that had it failed while " +
                                           options_.facts.name + " copied it");
  if (!j.failure.error) ++failure_epoch_;
  j.failure.error = std::make_exception_ptr(why);
  const std::exception_ptr error = j.failure.error;
  j.host.roll_back();
  memory_.spoil(j);
  std::vector<std::pair<array_core*, std::uint32_t>> updated;  // in place: what was there before is gone
  for (const job::held& h : j.copies)
    if (h.written && j.launched && t.accesses[h.access].mode == access_mode::update)
      updated.emplace_back(h.copy->array, h.copy->tile);
  memory_.let_go(j);
  jobs_.give(j);
  report_batch all;
  all.lost = std::move(updated);
  all.lost_why = error;
  if (may_run_again(t)) {
    t.phase.fetch_and(~(phase_mask | epoch_mask), std::memory_order_acq_rel);  // waiting again
    all.returned.push_back(&t);
  } else {
    end_task(t, error, begin);
  }
  placement_.report(*this, std::move(all));
}

}  // namespace troupe::detail
