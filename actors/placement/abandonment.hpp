// What this file is for: the end of a runtime: tasks that will not run any more, and coroutines that wait for them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <coroutine>
#include <cstdint>
#include <utility>
#include <vector>

namespace troupe::detail {

/// Whether tasks are being given up, and which have been. With placement's turn only.
class abandonment {
 public:
  /// From here on no task that becomes ready is handed out.
  void begin() { begun_ = true; }
  bool has_begun() const { return begun_; }
  /// Counts a task that was given up. `waits`: the coroutine that waited for it, or null.
  void note(std::coroutine_handle<> waits) {
    if (waits) unresumed_.push_back(waits);
    ++tasks_;
  }
  std::uint64_t tasks() const { return tasks_; }
  /// Returns the coroutines whose tasks will not resume them, each once.
  std::vector<std::coroutine_handle<>> take_unresumed() { return std::exchange(unresumed_, {}); }

 private:
  bool begun_ = false;
  std::uint64_t tasks_ = 0;
  std::vector<std::coroutine_handle<>> unresumed_;
};

}  // namespace troupe::detail
