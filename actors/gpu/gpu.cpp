// What this file is for: a device's actor as others see it, and its thread.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/gpu.hpp"

#include "actors/execution/task_errors.hpp"
#include "actors/gpu/actor.hpp"
#include "actors/placement/placement.hpp"

namespace troupe::detail {

gpu_actor::gpu_actor(gpu_options o, std::unique_ptr<devices::accelerator> device, placement& p, wait_table& b,
                     runtime_state& rt)
    : options_(std::move(o)),
      placement_(p),
      board_(b),
      rt_(rt),
      time_(options_.deadline, ns_per_tick()),
      watchers_(time_.tick_ns()),
      device_(std::move(device)),
      memory_(rt, lanes_, {options_.gather, options_.gathers}, counters_.bytes, device_->facts().memory_bytes),
      jobs_(rt, options_.facts.name, stopping_, device_->facts().lanes - gpu_copy_lanes),
      node_(options_.facts.name.c_str(), stopping_),
      clocks_(static_cast<std::size_t>(device_->facts().lanes)),
      probes_(time_.tick_ns()) {
  lanes_.use(device_.get(), device_->facts().lanes);
  memory_.use(device_.get());
  memory_.know_peers(options_.peers);
  device_->listen([this] { mail_.alarm_bell().ring(); });
  trace_.open(options_.sink, options_.lane, options_.facts.name);
}

// ---- the executor ---------------------------------------------------------------------------------------------------

void gpu_actor::start() {
  thread_.start(
      options_.facts.name, options_.keep_alive.lock(), [self = shared_from_this()] { self->thread_main(); },
      [this](std::exception_ptr why) { tell_supervisor(std::move(why)); });
}

void gpu_actor::run_tasks(std::span<task_record* const> tasks, attention who) {
  bell& alarm = mail_.alarm_bell();
  bool wake, left_alone = false;
  {
    bell::held hold = alarm.hold();
    if (!mail_.post(hold, tasks)) {  // the device has ended; only internal tasks come now
      hold.unlock();
      for (task_record* t : tasks) refuse(*t);
      return;
    }
    if (driven_by_this_thread_ == this) return;  // the caller has the turn, and looks again
    if (watchers_.is_patient(hold) && who == attention::client && tasks.size() == 1 && mail_.holds_one_call(hold)) {
      left_alone = true;
      watchers_.note_left(hold, ticks());
    } else {
      alarm.mark_rung(hold);
    }
    wake = alarm.is_rung(hold) && alarm.has_sleeper();
  }
  if (who == attention::client) drive_now();
  if (wake) alarm.wake();
  if (left_alone && mail_.queued() != 0) alarm.ring();
}

executor_report gpu_actor::report() const {
  executor_report r = report_of_facts();
  counters_.report(r);
  r.bytes_from_peers = memory_.bytes_from_peers();
  r.bytes_out = memory_.bytes_out();
  r.memory_bytes = memory_.bytes();
  r.memory_used_max = memory_.used_max();
  return r;
}

bool gpu_actor::wait_ended(std::chrono::steady_clock::time_point deadline) {
  const bool ended = thread_.wait_ended(deadline);  // if not, its device does not answer; the actor lives until it does
  return repair_.wait_ended(deadline) && ended;
}

std::vector<task_record*> gpu_actor::running() const {
  const bell::held hold = mail_.hold();
  return jobs_.shown(hold);
}

// ---- the thread -----------------------------------------------------------------------------------------------------

void gpu_actor::thread_main() {
  const std::uint64_t spin_ticks = time_.ticks_of(options_.spin);
  bool active = false;
  const auto be_active = [&](bool now) {
    if (now != active) now ? placement_.became_active() : placement_.became_idle();
    active = now;
  };
  std::uint64_t idle_since = 0;
  for (;;) {
    be_active(true);
    if (step() || placement_.take_turn(this)) {
      idle_since = 0;
      continue;
    }
    if (stopping_.load() && jobs_.empty() && mail_.internal() == 0) break;
    const std::uint64_t now = ticks();
    if (idle_since == 0) idle_since = now;
    const bool left_to_watcher = watchers_.any() && jobs_.size() <= 1 && mail_.queued() == 0;
    if (now - idle_since < spin_ticks && !left_to_watcher) {
      yield();
      continue;
    }
    idle_since = 0;
    watchers_.leave_to_them(left_to_watcher && !jobs_.empty());
    if (left_to_watcher && !watchers_.any()) continue;  // gone just now
    try {
      if (!left_to_watcher) ask_to_be_woken();
      if (get_ready() || probe_link()) continue;
    } catch (...) {
      fail_device(std::current_exception());
      continue;
    }
    be_active(false);
    sleep();
  }
  be_active(false);
  close_device();
  trace_.flush();
  for (task_record* t : mail_.close()) refuse(*t);  // they came after the last look
}

// Nothing is left to bring home or to free.
void gpu_actor::refuse(task_record& t) {
  task_record* const one = &t;
  if (claim(t)) {
    if (t.kind == task_kind::transfer && t.accesses[0].mode == access_mode::update) t.error = why_rescued(t);
    fulfil(t, board_);
  }
  placement_.report_done({&one, 1}, nullptr);
}

// Memory of the caller holds what was computed; the rest goes with the device.
void gpu_actor::close_device() {
  try {
    if (device_)
      memory_.each([&](logic::replica& r) {
        if (gpu_memory::take_back(r) && r.dirty && r.array->is_borrowed()) memory_.send_home(r, jobs_.take());
      });
    lanes_.keep_promises();
    while (!jobs_.empty())
      if (!collect()) std::this_thread::yield();
  } catch (...) {
    fail_device(std::current_exception());
  }
  memory_.break_loans();
  memory_.forget_all();
  kernels_.drop_handles();
  device_.reset();
}

// Polling is faster while something is about to end; now the device is to ring.
void gpu_actor::ask_to_be_woken() {
  for (const job& j : jobs_) lanes_.ring_at_end(j.route.lane);
}

bool gpu_actor::step() {
  bool any = false;
  try {
    if (repair_.has_complaint()) std::rethrow_exception(repair_.take_complaint());
    if (device_) check_fault();
    if (repair_.is_under_way() && !go_on_after_failure()) return false;
    any = collect();
    any = start_internal_tasks() || any;
    any = start_some() || any;
    lanes_.keep_promises();
  } catch (...) {
    fail_device(std::current_exception());
    any = true;
  }
  return report_done_tasks() || any;
}

std::shared_ptr<gpu> make_gpu(gpu_options o, placement& p, wait_table& b, runtime_state& rt) {
  auto device = o.open();
  return std::make_shared<gpu_actor>(std::move(o), std::move(device), p, b, rt);
}

}  // namespace troupe::detail
