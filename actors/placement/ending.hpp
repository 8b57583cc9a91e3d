// What this file is for: the end of a runtime: why it ends, how far that is, tasks that will not run any more.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::detail {

/// The end comes in steps: an actor has failed without which the runtime cannot go on, or the runtime is shut down;
/// tasks are given up; no body is to begin any more. With placement's turn only, but for what says otherwise.
class ending {
 public:
  /// Notes that something was thrown in a turn; true if nothing was before.
  bool note_failure() { return !std::exchange(has_failed_, true); }
  /// Sets why the runtime ends by itself, before the first task is refused. Without it the runtime was shut down.
  void set_reason(std::string why) { why_ = std::move(why); }

  // ---- any thread, once no more tasks are taken ---------------------------------------------------------------------
  /// Returns the reason that was set, or an empty text.
  const std::string& reason() const { return why_; }
  /// Returns what a task is told that has not run.
  std::string why_not_run() const { return why_.empty() ? "the runtime was shut down" : why_; }
  /// Returns what a call is told that would spawn another task.
  std::string why_no_more() const {
    return why_.empty() ? "the runtime has been shut down: it takes no more tasks" : why_ + ": it takes no more tasks";
  }

  // ---- tasks that are given up --------------------------------------------------------------------------------------
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

  // ---- any thread ---------------------------------------------------------------------------------------------------
  /// Ends all tasks: no body is to begin any more.
  void complete() { ended_.store(true, std::memory_order_seq_cst); }
  /// True from then on. Threads that run bodies keep the reference.
  const std::atomic<bool>& is_complete() const { return ended_; }

 private:
  std::atomic<bool> ended_{false};
  bool begun_ = false, has_failed_ = false;
  std::string why_;
  std::uint64_t tasks_ = 0;
  std::vector<std::coroutine_handle<>> unresumed_;
};

}  // namespace troupe::detail
