// What this file is for: whose turn it is to use a device: the actor's thread, or one that waits for a task of the device.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Waking a thread costs more than launching a small kernel, and it would have to be woken again when the kernel has
// ended. So a thread that gives the device one small task, for which all is there, begins it while the actor's thread
// sleeps; and a thread that waits looks whether the task has ended. The actor's thread leaves it to them and looks up now
// and then: a thread that has begun something may go away without waiting for it. Such a thread may hold placement's turn:
// it does nothing that takes that turn (see is_for_own_thread).
#include "actors/gpu/actor.hpp"

#include <algorithm>

#include "actors/gpu/boxes.hpp"
#include "actors/placement/placement.hpp"

namespace troupe::detail {

namespace {
// Interval at which the sleeping thread looks up while others are busy.
constexpr auto nap = std::chrono::milliseconds(1);
// The same while waiting threads may begin tasks, and the time after the last one for which it goes on.
constexpr auto short_nap = std::chrono::microseconds(100);
constexpr double patience_ns = 2e6;
// The thread of a device that has kernels to load looks this often whether it may.
constexpr std::chrono::nanoseconds load_nap = std::chrono::milliseconds(50);
}  // namespace

thread_local const gpu_actor* gpu_actor::driven_by_this_thread_ = nullptr;

// ---- the actor's thread ---------------------------------------------------------------------------------------------

// Leaves the turn meanwhile.
void gpu_actor::sleep() {
  clocks_.sleep();
  std::chrono::nanoseconds until_look = deadline_ticks_ != 0 ? options_.deadline / 4 : std::chrono::nanoseconds(0);
  if (may_probe()) {
    const auto until = std::max(probes_.left(ticks()), std::chrono::nanoseconds(1));
    until_look = until_look.count() == 0 ? until : std::min(until, until_look);
  }
  if (requests_.any())
    until_look = until_look.count() == 0 ? load_nap : std::min<std::chrono::nanoseconds>(load_nap, until_look);
  {
    bell::held hold = bell_.hold();
    running_.clear();
    for (const job& j : jobs_)
      if (j.task && !is_internal(j.task->kind)) running_.push_back(j.task);
    bell_.announce(hold);
    leave_turn();
    if (!placement_.has_mail_for_sleeper()) wait_for_bell(hold, until_look);
    bell_.answer(hold);
    patient_ = false;
    running_.clear();
  }
  bell_.get_up();
  unwatched_.store(false, std::memory_order_seq_cst);
  turn_.take();
}

// To whoever waits while this thread would only look again.
void gpu_actor::yield() {
  leave_turn();
  std::this_thread::yield();
  turn_.take();
}

// `until_look`: 0, or how long it sleeps at most.
void gpu_actor::wait_for_bell(bell::held& hold, std::chrono::nanoseconds until_look) {
  if (watch_.exchange(false, std::memory_order_relaxed)) {
    bell_.wait_for(hold, nap);
    return;
  }
  for (;;) {
    const bool loose = unwatched_.load(std::memory_order_seq_cst);
    patient_ = watchers_stay_.load(std::memory_order_relaxed) &&
               static_cast<double>(ticks() - last_driven_) * tick_ns_ < patience_ns;
    if (!loose && !patient_) break;
    if (bell_.wait_for(hold, short_nap)) return;
    if (loose && unwatched_.load(std::memory_order_seq_cst) && !has_watcher()) {
      watchers_stay_.store(false, std::memory_order_relaxed);  // whoever began it does not stay
      return;
    }
  }
  if (until_look.count() != 0)
    bell_.wait_for(hold, until_look);
  else
    bell_.wait(hold);
}

// ---- others ---------------------------------------------------------------------------------------------------------

bool gpu_actor::drive() {
  if (!busy_.load(std::memory_order_relaxed)) return false;
  // Drivers lock what they are asked about: who asks without a pause keeps them from getting on.
  const std::uint64_t now = ticks();
  if (now - looked_.load(std::memory_order_relaxed) < look_ticks_) return false;
  looked_.store(now, std::memory_order_relaxed);
  return drive_now();
}

void gpu_actor::unwatch() {
  if (watchers_.fetch_sub(1, std::memory_order_seq_cst) == 1 && unwatched_.load(std::memory_order_seq_cst))
    bell_.ring();
}

bool gpu_actor::drive_now() {
  if (!turn_.try_take()) return false;
  bool any = false;
  if (device_ && !to_tell_) {
    const gpu_actor* const before = std::exchange(driven_by_this_thread_, this);
    const int place = device_->visit();
    any = step_small();
    device_->leave(place);
    driven_by_this_thread_ = before;
  }
  const bool loose = !jobs_.empty();
  const auto is_left = [&](const job& j) { return is_for_own_thread(j) && lanes_.has_reached(j.lane, j.end); };
  const bool complains = to_tell_ != nullptr || (bell_.has_sleeper() && std::ranges::any_of(jobs_, is_left));
  if (any && !loose && has_watcher()) watchers_stay_.store(true, std::memory_order_relaxed);
  if (bell_.has_sleeper()) unwatched_.store(loose, std::memory_order_seq_cst);
  leave_turn();
  if ((complains || internal_count_.load() != 0 || queued_count_.load() != 0) && bell_.has_sleeper()) bell_.ring();
  return any;
}

// As `step`, but for what may take longer or is not known to be harmless.
bool gpu_actor::step_small() {
  bool any = false;
  try {
    any = collect();
    any = start_some(true) || any;
    lanes_.keep_promises();
  } catch (...) {
    to_tell_ = std::current_exception();
    any = true;
  }
  if (!done_.empty()) {
    placement_.report_done(done_, this);
    done_.clear();
    any = true;
  }
  return any;
}

// A kernel that has been compiled, on tiles that are there: no copies, no code of the user's.
bool gpu_actor::is_small(const task_record& t) {
  if (t.kind != task_kind::call || t.kernel->routines[static_cast<std::size_t>(options_.facts.kind)] ||
      !kernels_.contains(t.kernel) || (t.extra && !t.extra->loans.empty()))
    return false;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array) continue;
    if (x.where) return false;
    const logic::replica* const r = memory_.find(*x.array, x.tile);
    if (!r || r->loan || (x.mode != access_mode::write && !r->is_current(known_version(*x.array, x.tile))))
      return false;
  }
  return true;
}

}  // namespace troupe::detail
