// What this file is for: the actor of a group of cores: worker threads that run bodies, and spare ones for those that wait.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   placement --run_tasks--> [ready queue] --> worker threads --report_done--> placement
//                                  ^               |
//                                  +--take_back----+  (a body that waits gives its slot to a spare thread)
//
// A slot is the right to run bodies; a group has as many as workers. Threads hold slots; who waits inside a body gives
// the slot away and takes one back before it goes on. Kernels never run on any other thread.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <troupe/options.hpp>

#include "actors/placement/placement.hpp"
#include "actors/protocol/executor.hpp"
#include "actors/protocol/trace.hpp"

namespace troupe::detail {

struct core_group_options {
  executor_facts facts;
  std::vector<int> cores;  // to bind the workers to; empty: no binding
  std::chrono::nanoseconds spin{};
  int spare_threads_max = 0;
  trace_sink* sink = nullptr;
  int first_lane = 0;
  std::weak_ptr<void> house;  // threads keep it alive
};

/// What the group tells its house when all its threads have gone to sleep; called from a worker, must not block.
using on_idle = void (*)(void* context);

class worker;

class core_group : public executor {
 public:
  /// Asks running bodies to stop and threads to end once their bodies return; does not wait.
  virtual void request_stop() = 0;
  /// True when every thread has ended, and every body on a thread that helps.
  virtual bool wait_ended(std::chrono::steady_clock::time_point) = 0;
  /// The tasks whose bodies run now or wait for others inside. Only while placement's turn is held.
  virtual std::vector<task_record*> running() const = 0;
  virtual int threads() const = 0;
  /// Runs this task on the calling thread, which is not one of the group's, if it is ready and nobody has it yet.
  /// `begin` is called before its body, which may take long and wait.
  virtual bool help_with(task_record&, const std::function<void()>& begin) = 0;

  // ---- for the bodies of this group's workers -----------------------------------------------------------------------
  /// Runs the awaited task here if it is ready, else sleeps without holding a slot. True if it is done.
  /// The task may be another runtime's; `board` is the one where its end is announced.
  virtual bool wait_inside(worker&, task_record& awaited, wait_board& board,
                           std::chrono::steady_clock::time_point deadline) = 0;
  /// Gives the worker's slot away, and takes one back.
  virtual void give_slot(worker&) = 0;
  virtual void take_slot(worker&) = 0;
  /// A body has ended the worker's thread, which goes on unwinding: its task is reported, as is what the thread holds.
  virtual void report_last(worker&, task_record&) {}
  /// The body of a graph's task; gives the first error of its nodes.
  virtual std::exception_ptr run_graph(worker&, task_record&) = 0;
};

std::shared_ptr<core_group> make_core_group(core_group_options, placement&, wait_board&, devices::device& host,
                                            house_link&, on_idle, void* context);

/// The task that runs on this thread; null outside bodies.
task_record* current_task() noexcept;
task_context* current_context() noexcept;
/// For a thread inside a body; see core_group.
bool wait_inside(task_record& awaited, wait_board&, std::chrono::steady_clock::time_point deadline);
/// Gives this thread's slot away; false outside bodies.
bool leave_slot();
void take_slot();

}  // namespace troupe::detail
