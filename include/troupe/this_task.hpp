// What this file is for: what code inside a task may do without holding its context: give its core away, look around.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Everything here is safe to call on any thread; outside a task it does nothing or answers "no".
#pragma once

#include <utility>

namespace troupe::this_task {

/// True on a thread that is running a task's body.
bool inside() noexcept;
/// True once somebody asked this task or its runtime to stop.
bool stop_requested() noexcept;
/// The name of the executor, or "".
const char* executor() noexcept;

/// While it lives, the task holds no worker's slot: other tasks run meanwhile. For blocking sections (a read from a
/// socket, a foreign lock). The destructor waits for a slot again, so take no lock inside that is still held when this ends:
/// bodies that want the lock may have all slots, and each waits for the other for ever. Lock and unlock while it lives, or
/// lock after it. Use it on the body's own thread only.
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

/// Calls `f` without holding the worker's slot, and gives what it returns, once there is a slot again. A lock that is held
/// across that, from before or by what `f` returns, can deadlock with bodies that want it; see `core_yielded`.
template <class F>
decltype(auto) yield_core(F&& f) {
  this_task::core_yielded yielded;
  return std::forward<F>(f)();
}

}  // namespace troupe
