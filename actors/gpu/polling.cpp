// What this file is for: whose turn a device is: its actor's thread's, or that of a thread that waits for a task of it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Waking a thread costs more than launching a small kernel, and it would have to be woken again when the kernel has
// ended. So a thread that gives the device one small task, for which all is there, begins it while the actor's thread
// sleeps; and a thread that waits looks whether the task has ended. The actor's thread leaves it to them and looks up
// now and then: a thread that has begun something may go away without waiting for it. Such a thread may hold
// placement's turn: it does nothing that takes that turn (see is_for_own_thread).
#include "actors/gpu/actor.hpp"

#include <algorithm>

#include "actors/gpu/boxes.hpp"
#include "actors/placement/placement.hpp"

namespace troupe::detail {

namespace {
// The thread of a device that has kernels to load looks this often whether it may.
constexpr std::chrono::nanoseconds load_nap = std::chrono::milliseconds(50);
}  // namespace

thread_local const gpu_actor* gpu_actor::driven_by_this_thread_ = nullptr;

// ---- the actor's thread ---------------------------------------------------------------------------------------------

// Leaves the turn meanwhile.
void gpu_actor::sleep() {
  clocks_.sleep();
  std::chrono::nanoseconds until_look = time_.look_every();
  if (may_probe()) {
    const auto until = std::max(probes_.left(ticks()), std::chrono::nanoseconds(1));
    until_look = until_look.count() == 0 ? until : std::min(until, until_look);
  }
  if (requests_.any())
    until_look = until_look.count() == 0 ? load_nap : std::min<std::chrono::nanoseconds>(load_nap, until_look);
  bell& alarm = mail_.alarm_bell();
  {
    bell::held hold = alarm.hold();
    jobs_.show(hold);
    alarm.announce(hold);
    leave_turn();
    if (!placement_.has_mail_for_sleeper()) watchers_.sleep(alarm, hold, until_look);
    alarm.answer(hold);
    jobs_.hide(hold);
  }
  alarm.get_up();
  watchers_.get_up();
  turn_.take();
}

// Gives the turn to a thread that waits, while this one would only look again.
void gpu_actor::yield() {
  leave_turn();
  std::this_thread::yield();
  turn_.take();
}

// ---- others ---------------------------------------------------------------------------------------------------------

bool gpu_actor::drive() { return watchers_.busy() && watchers_.may_look(ticks()) && drive_now(); }

void gpu_actor::unwatch() {
  if (watchers_.remove()) mail_.alarm_bell().ring();
}

bool gpu_actor::drive_now() {
  if (!turn_.try_take()) return false;
  bool any = false;
  if (device_ && !repair_.has_complaint()) {
    const gpu_actor* const before = std::exchange(driven_by_this_thread_, this);
    const int left = device_->visit();
    any = step_small();
    device_->leave(left);
    driven_by_this_thread_ = before;
  }
  const bool sleeps = mail_.alarm_bell().has_sleeper();
  const auto is_left = [&](const job& j) {
    return is_for_own_thread(j) && lanes_.has_reached(j.route.lane, j.route.end);
  };
  const bool complains = repair_.has_complaint() || (sleeps && std::ranges::any_of(jobs_, is_left));
  watchers_.note_driven(any, !jobs_.empty(), sleeps);
  leave_turn();
  if ((complains || !mail_.is_empty()) && mail_.alarm_bell().has_sleeper()) mail_.alarm_bell().ring();
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
    repair_.note_complaint(std::current_exception());
    any = true;
  }
  return report_done_tasks() || any;
}

}  // namespace troupe::detail
