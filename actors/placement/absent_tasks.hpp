// What this file is for: the list of tasks that no executor can run and that wait for a node to join.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "actors/protocol/phase.hpp"

namespace troupe::detail {

/// Tasks with a deadline each, in ticks, and what they are told. With placement's turn only, but `any`.
class absent_tasks {
 public:
  /// Adds a task that fails with `why` once `due` has come. False if the task has been cancelled: then it is not
  /// added. Either this sees a cancellation, or the thread that cancels sees `any`.
  bool add(task_record& t, std::uint64_t due, std::exception_ptr why) {
    all_.push_back({&t, due, std::move(why)});
    count();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (is_waiting(t, std::memory_order_seq_cst)) return true;
    all_.pop_back();
    count();
    return false;
  }
  /// True if some task may be in the list; a fence (sequentially consistent) before. Any thread.
  bool any() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return count_.load(std::memory_order_seq_cst) != 0;
  }

  /// Removes the tasks that `can_go` agrees to, and returns them in the order in which they came.
  template <class F>
  std::vector<task_record*> take(F&& can_go) {
    std::vector<task_record*> found;
    std::erase_if(all_, [&](const entry& e) {
      if (!can_go(*e.task)) return false;
      found.push_back(e.task);
      return true;
    });
    count();
    return found;
  }

  /// Notes that some deadline may have passed or some task may have been cancelled, if there are tasks.
  void look_soon() { look_ = !all_.empty(); }
  bool is_to_look() const { return look_; }
  /// Removes tasks that have been cancelled, with a call of `cancelled(task)`, and those whose deadline has passed,
  /// with a call of `over(task, why)`. Returns the next deadline, or 0.
  template <class Cancelled, class Over>
  std::uint64_t look(std::uint64_t now, Cancelled&& cancelled, Over&& over) {
    look_ = false;
    std::uint64_t next = 0;
    std::erase_if(all_, [&](const entry& e) {
      if (!is_waiting(*e.task, std::memory_order_acquire)) {
        cancelled(*e.task);
        return true;
      }
      if (e.due <= now) {
        over(*e.task, e.why);
        return true;
      }
      next = next == 0 ? e.due : std::min(next, e.due);
      return false;
    });
    count();
    return next;
  }

  /// Notes that a node has gone for good.
  void note_gone(std::string name) { last_gone_ = std::move(name); }
  /// Returns which node is missing that could run the task, as the end of a sentence; an empty text if it is not for
  /// want of a node that nobody can run it.
  std::string what_has_gone(const task_record&) const;

 private:
  struct entry {
    task_record* task;
    std::uint64_t due;  // in ticks
    std::exception_ptr why;
  };
  static bool is_waiting(const task_record& t, std::memory_order order) {
    return (t.phase.load(order) & phase_mask) == phase_waiting;
  }
  void count() { count_.store(all_.size(), std::memory_order_seq_cst); }

  std::vector<entry> all_;
  std::atomic<std::size_t> count_{0};  // the size of all_, for any thread
  bool look_ = false;
  std::string last_gone_;  // name of the node that left last
};

}  // namespace troupe::detail
