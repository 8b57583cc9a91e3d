// What this file is for: the caller that waits for a task's end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <coroutine>
#include <memory>
#include <thread>

#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>
#include <troupe/runtime.hpp>

#include "actors/execution/graph_run.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/resumption.hpp"
#include "actors/protocol/task_name.hpp"
#include "net/adaptive_spin.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

bool is_done(const task_record& t) noexcept {
  return (t.phase.load(std::memory_order_acquire) & phase_mask) == phase_done;
}

void wait(task_record& t) { wait_until(t, std::chrono::steady_clock::time_point::max()); }

namespace {

// Factor by which a waiting thread polls longer while a device has work under way: it takes the place of the device's
// thread.
constexpr int device_patience = 4;

// Polls for the task's end as long as that is likely to be worth it. True if it is done.
bool look_for_end(engine& the_engine, task_record& t, std::chrono::steady_clock::time_point deadline) {
  const bool may_help =
      the_engine.settings().waiting_thread_helps && deadline == std::chrono::steady_clock::time_point::max();
  const auto begin = std::chrono::steady_clock::now();
  auto spin_until = std::min(deadline, begin + the_engine.settings().spin);
  thread_local net::adaptive_spin spin;
  bool for_nodes =
      the_engine.state().on_nodes.load(std::memory_order_relaxed) != 0 && deadline > begin &&
      spin.begin(begin, std::min<std::chrono::nanoseconds>(deadline - begin, the_engine.settings().cluster.spin));
  const auto device_until = std::min(deadline, begin + (1 + device_patience) * the_engine.settings().spin);
  engine::device_watch devices(the_engine);
  for (int looks = 0;; ++looks) {
    if (is_done(t)) return true;
    if (the_engine.placement_actor().take_turn_waiting() || devices.look()) continue;
    if (may_help && the_engine.help_with(t, [&] { devices.end(); })) return true;
    if (for_nodes) {
      for_nodes = spin.goes_on();
      continue;
    }
    if ((looks & 15) == 15 && std::chrono::steady_clock::now() >= spin_until) {
      if (!devices.busy() || spin_until == device_until) return false;
      spin_until = device_until;
    }
    if (devices.busy())
      std::this_thread::yield();  // a driver's thread that has just woken may be on this core
    else
      spin_lock::pause();
  }
}

// Throws if this thread holds a view that has to be closed before the task can run.
void check_views(engine& the_engine, const task_record& t, std::chrono::steady_clock::time_point deadline) {
  if (deadline != std::chrono::steady_clock::time_point::max()) return;
  const open_views::held views = the_engine.views().of_this_thread();
  if (views.empty() || !the_engine.placement_actor().is_behind(views.tasks(), &t) || is_done(t)) return;
  throw error(errc::would_deadlock,
              "'" + name_of(t) + "' can only go on after a host view that this thread holds (of " + views.names() +
                  "): close the view before you wait, or move it to the thread that is to close it");
}

[[noreturn]] void refuse_to_wait(const task_record& t) {
  throw error(errc::would_deadlock,
              "a destructor waits for '" + name_of(t) +
                  "', of what a task has returned, or had captured and never ran: it is called in the middle of a "
                  "scheduling pass, and no task goes on before it returns");
}

}  // namespace

bool wait_until(task_record& t, std::chrono::steady_clock::time_point deadline) {
  if (is_done(t)) return true;
  if (is_recorded(t.kind))
    throw error(errc::bad_argument, "the future stands for a recorded call, which is never ready: wait for the run");
  // Keeps the engine: the runtime may be destroyed meanwhile, and a body that runs here be left behind.
  const std::shared_ptr<engine> kept = t.rt->shared_engine.lock();
  if (!kept && is_done(t)) return true;
  if (!kept) throw error(errc::runtime_stopped, "the future's runtime is gone");
  kept->check_process();
  engine& the_engine = *kept;
  if (deadline == std::chrono::steady_clock::time_point::max() && the_engine.placement_actor().decides_here())
    refuse_to_wait(t);
  if (current_task()) {
    check_views(the_engine, t, deadline);
    return wait_inside(t, the_engine.board(), deadline);
  }
  if (the_engine.around().wait) return the_engine.around().wait([&] { return is_done(t); });
  if (look_for_end(the_engine, t, deadline)) return true;
  if (deadline != std::chrono::steady_clock::time_point::max() || the_engine.views().of_this_thread().empty())
    return the_engine.board().wait(t, deadline);
  // Some of what a task waits for is found when its data is to be moved: this is asked again, less and less often.
  const auto check = [&] {
    check_views(the_engine, t, deadline);
    return true;
  };
  return check() && the_engine.board().wait_asking(t, check);
}

void throw_error(const task_record& t) { throw_task_error(t); }

void resume_after(task_record& t, std::coroutine_handle<> h) {
  engine& the_engine = engine_of(t);
  const target to{&the_engine, nullptr};
  task_record* r = make_record(to, nullptr, nullptr, resumption{h}, static_cast<const box<1>*>(nullptr),
                               static_cast<const extent<1>*>(nullptr));
  const future<void> held(r);
  retain(&t);
  r->accesses[0].array = nullptr;
  r->accesses[0].task = &t;
  r->accesses[0].link = link_mode::order;  // also after a failure: await_resume throws it
  r->access_count = 1;
  submit(to, r);
}

}  // namespace troupe::detail
