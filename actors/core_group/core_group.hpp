// What this file is for: the actor of a group of cores: worker threads that run bodies, and spare threads for bodies
// that wait.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   placement --run_tasks--> [ready queue] --> worker threads --report_done--> placement
//                                  ^               |
//                                  +--take_back----+  (a body that waits gives its slot to a spare thread)
//
// A slot is the right to run bodies; a group has as many as workers. Threads hold slots; a thread that waits inside a
// body gives its slot away and takes one back before it goes on. Kernels never run on any other thread.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <troupe/options.hpp>

#include "actors/actor.hpp"
#include "actors/protocol/executor.hpp"
#include "actors/protocol/trace.hpp"

namespace troupe::devices {
class device;
}
namespace troupe::net {
class control_poller;
}

namespace troupe::detail {

class open_runs;
class placement;
class wait_table;
struct runtime_state;

struct core_group_options {
  executor_facts facts;
  std::vector<int> cores;  // cores that the workers are bound to; empty: no binding
  int usable_cores = 0;    // cores that the threads of this process may use at a time; 0: as many as slots
  double core_quota = 0;   // cores that they get at most, by the quota of a cgroup; 0: there is none
  std::chrono::nanoseconds spin{};
  int spare_threads_max = 0;
  trace_sink* sink = nullptr;
  int first_lane = 0;
  std::weak_ptr<void> keep_alive;  // the engine; threads keep it alive
};

/// Called when all threads of the group have gone to sleep, by one of its workers; must not block.
using on_idle = void (*)(void* context);

class worker;

class core_group : public executor, public actor {
 public:
  actor_kind kind() const override { return actor_kind::core_group; }
  std::string label() const override { return facts().name; }
  /// Asks running bodies to stop and threads to end once their bodies return; does not wait.
  virtual void request_stop() = 0;
  /// Waits until every thread has ended, and every body on a thread from outside that helps; false if the deadline
  /// passes before.
  virtual bool wait_ended(std::chrono::steady_clock::time_point) = 0;
  /// Returns the tasks whose bodies run now or wait for others inside. Only while placement's turn is held.
  virtual std::vector<task_record*> running() const = 0;
  virtual int threads() const = 0;
  /// Has threads that look for work poll the network, too. Once, before there is any other node.
  virtual void poll_with(std::shared_ptr<net::control_poller>) {}
  /// Runs this task on the calling thread, which is not one of the group's, if it is ready and no thread has it yet;
  /// true if it did. `begin` is called before its body, which may take long and wait.
  virtual bool help_with(task_record&, const std::function<void()>& begin) = 0;

  // ---- for the bodies of this group's workers -----------------------------------------------------------------------
  /// Runs the awaited task on this thread if it is ready, else sleeps without holding a slot. True if the task is done.
  /// It may be another runtime's; `board` is the one where its end is announced.
  virtual bool wait_inside(worker&, task_record& awaited, wait_table& board,
                           std::chrono::steady_clock::time_point deadline) = 0;
  /// Gives the worker's slot away.
  virtual void give_slot(worker&) = 0;
  /// Takes a slot back for the worker; blocks until there is one.
  virtual void take_slot(worker&) = 0;
  /// Reports the task whose body has ended the worker's thread, which goes on unwinding, and all that the thread holds.
  virtual void report_last(worker&, task_record&) {}
  /// Ends a task that a worker has claimed after the end of all tasks, without its body.
  virtual void refuse_claimed(task_record&) {}
  /// Runs the body of a graph's task; returns the first error of its nodes.
  virtual std::exception_ptr run_graph(worker&, task_record&) = 0;
};

std::shared_ptr<core_group> make_core_group(core_group_options, placement&, wait_table&, open_runs&,
                                            devices::device& host, runtime_state&, on_idle, void* context);

/// Returns the task that runs on this thread; null outside bodies.
task_record* current_task() noexcept;
task_context* current_context() noexcept;
/// Calls core_group::wait_inside for the calling thread, which is inside a body.
bool wait_inside(task_record& awaited, wait_table&, std::chrono::steady_clock::time_point deadline);
/// Gives this thread's slot away; false outside bodies, and if it has been given away already.
bool leave_slot();
/// Takes a slot back after `leave_slot` has returned true.
void take_slot();

}  // namespace troupe::detail
