// What this file is for: the task that resumes a coroutine which waits for another task, and how it is known.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <coroutine>

#include <troupe/detail/call.hpp>

namespace troupe::detail {

/// The body of a task that resumes a coroutine.
struct resumption {
  std::coroutine_handle<> waits;
  void operator()() const { waits.resume(); }
};

/// Returns the coroutine that the task resumes, null for other tasks. Only before the task's body has run.
inline std::coroutine_handle<> waits_for(task_record& t) noexcept {
  using state = call_state<resumption>;
  return t.ops == &ops_of<state, void> ? call_storage<state, void>::of(t).body.waits : nullptr;
}

}  // namespace troupe::detail
