// What this file is for: what code inside a task may do without holding its context: give its core away, look around.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

/// Functions for code inside a task. Safe to call on any thread; outside a task they do nothing or answer "no".
namespace troupe::this_task {

/// True on a thread that is running a task's body.
bool inside() noexcept;
/// True once this task or its runtime was asked to stop.
bool stop_requested() noexcept;
/// The name of the executor that runs this task, or "".
const char* executor() noexcept;

/// A core_yielded gives the task's slot to other tasks while it exists. For blocking sections (a read from a socket, a
/// foreign lock). The destructor waits for a slot again. So do not hold a lock when it runs: bodies that want the lock
/// may have all slots, and each would wait for the other for ever. Lock and unlock while the object exists, or lock
/// after it. Use it on the body's own thread only.
class core_yielded {
 public:
  core_yielded();
  ~core_yielded();
  core_yielded(const core_yielded&) = delete;
  core_yielded& operator=(const core_yielded&) = delete;

 private:
  bool left_ = false;
};

}  // namespace troupe::this_task

namespace troupe {

/// Calls `f` without holding the worker's slot, and returns its result once there is a slot again. A lock that is held
/// meanwhile, taken before or held by the result of `f`, can deadlock with bodies that want it; see `core_yielded`.
template <class F>
decltype(auto) yield_core(F&& f) {
  this_task::core_yielded yielded;
  return std::forward<F>(f)();
}

}  // namespace troupe
