// What this file is for: what a device is to do next, and the bell that wakes its thread.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/scheduling/lookahead_queue.hpp"
#include "actors/protocol/bell.hpp"
#include "actors/protocol/phase.hpp"

namespace troupe::detail {

/// Calls and internal tasks that a device has been given and has not begun. The bell's lock guards them.
class gpu_mailbox {
 public:
  // ---- any thread ---------------------------------------------------------------------------------------------------
  bell& alarm_bell() { return bell_; }
  const bell& alarm_bell() const { return bell_; }
  [[nodiscard]] bell::held hold() const { return bell_.hold(); }
  /// Returns the number of calls and runs of graphs. Sequentially consistent, as is that of internal tasks: see
  /// turn::leave.
  std::size_t queued() const { return queued_.load(std::memory_order_seq_cst); }
  std::size_t internal() const { return internal_count_.load(std::memory_order_seq_cst); }
  bool is_empty() const { return queued() == 0 && internal() == 0; }
  bool looks_ahead() const { return looks_ahead_.load(std::memory_order_relaxed); }
  /// Returns false, and takes nothing, if the mailbox has been closed.
  bool post(const bell::held&, std::span<task_record* const> tasks) {
    if (closed_) return false;
    for (task_record* t : tasks) {
      if (is_internal(t->kind)) {
        internal_.push_back(t);
        internal_count_.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      queue_.push(t, priority_of(*t));
      queued_.fetch_add(1, std::memory_order_relaxed);
    }
    return true;
  }
  /// Returns true if one call waits and nothing else.
  bool holds_one_call(const bell::held&) const { return queue_.size() == 1 && internal_.empty(); }
  /// Takes out calls that `wanted` accepts, the last ones first, as many as there is room for; returns their number.
  std::size_t take_back(std::span<task_record*> room, const std::function<bool(const task_record&)>& wanted) {
    const bell::held lock = hold();
    std::size_t n = 0;
    queue_.take_newest(
        room.size(), [&](const task_record* t) { return wanted(*t); }, [&](task_record* t) { room[n++] = t; });
    queued_.fetch_sub(n, std::memory_order_relaxed);
    return n;
  }

  // ---- the thread that has the device's turn ------------------------------------------------------------------------
  /// Takes out the next call; null if there is none.
  task_record* pop() {
    const bell::held lock = hold();
    task_record* const t = queue_.pop();
    if (t) queued_.fetch_sub(1, std::memory_order_relaxed);
    return t;
  }
  /// Puts back the call that was popped last and could not be started.
  void put_back(task_record& t) {
    const bell::held lock = hold();
    queue_.push_front(&t, priority_of(t));
    queued_.fetch_add(1, std::memory_order_relaxed);
  }
  /// Calls `start` for each internal task; those for which it returns false are put back. Returns true if one has
  /// started. An exception of `start` passes through; the task that it was called for is not put back.
  template <class Start>
  bool start_internal(Start&& start) {
    if (internal() == 0) return false;
    std::deque<task_record*> waiting;
    {
      const bell::held lock = hold();
      waiting.swap(internal_);
    }
    const auto put_back = [&] {
      const bell::held lock = hold();
      internal_.insert(internal_.begin(), waiting.begin(), waiting.end());
    };
    bool any = false;
    try {
      for (std::size_t left = waiting.size(); left != 0; --left) {
        task_record& t = *waiting.front();
        waiting.pop_front();
        internal_count_.fetch_sub(1, std::memory_order_relaxed);
        if (start(t)) {
          any = true;
          continue;
        }
        waiting.push_back(&t);
        internal_count_.fetch_add(1, std::memory_order_relaxed);
      }
    } catch (...) {
      put_back();
      throw;
    }
    if (!waiting.empty()) put_back();
    return any;
  }
  /// Begins to note when each tile is used next: memory is short, so each tile that comes in evicts another one.
  void look_ahead() {
    if (looks_ahead()) return;
    const bell::held lock = hold();
    queue_.look_ahead();
    looks_ahead_.store(true, std::memory_order_relaxed);
  }
  /// Becomes a plain queue again if no call waits; returns true if none does.
  bool rest() {
    const bell::held lock = hold();
    if (!queue_.empty()) return false;
    queue_.rest();
    looks_ahead_.store(false, std::memory_order_relaxed);
    return true;
  }
  /// Returns what `f(const logic::lookahead_queue&)` returns. `f` must not call other functions of the mailbox.
  template <class F>
  auto ask_queue(F&& f) const {
    const bell::held lock = hold();
    return f(queue_);
  }
  /// Takes out all calls.
  std::vector<task_record*> take_calls() {
    const bell::held lock = hold();
    std::vector<task_record*> all;
    while (task_record* const t = queue_.pop()) all.push_back(t);
    queued_.store(0, std::memory_order_relaxed);
    return all;
  }
  /// Takes nothing any more; returns the internal tasks that nobody has started.
  std::deque<task_record*> close() {
    const bell::held lock = hold();
    closed_ = true;
    return std::exchange(internal_, {});
  }

 private:
  static int priority_of(const task_record& t) { return t.extra ? t.extra->options.priority : 0; }

  mutable bell bell_;
  logic::lookahead_queue queue_;
  std::deque<task_record*> internal_;
  std::atomic<std::size_t> queued_{0}, internal_count_{0};
  std::atomic<bool> looks_ahead_{false};
  bool closed_ = false;
};

}  // namespace troupe::detail
