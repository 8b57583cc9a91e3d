// What this file is for: the farewells of borrowed arrays, which have lost their handles and are still in use.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

namespace troupe::detail {

struct task_record;

/// Farewell tasks that have not ended: each ends when its array is freed, so that borrowed memory is its owner's again,
/// or when the runtime ends. Any thread; the lock is the part's own and held for a few instructions.
class farewells {
 public:
  /// Adds a farewell; false after `end_all`: then the caller ends it.
  bool add(task_record& t) {
    std::lock_guard hold(lock_);
    if (over_) return false;
    open_.push_back(&t);
    count_.store(open_.size(), std::memory_order_seq_cst);
    return true;
  }
  /// Removes a farewell whose array has been freed.
  void remove(task_record& t) {
    std::lock_guard hold(lock_);
    std::erase(open_, &t);
    count_.store(open_.size(), std::memory_order_seq_cst);
  }
  /// Calls `end` with each farewell, removes all, and takes no more from now on. None of them may be removed meanwhile.
  template <class F>
  void end_all(F&& end) {
    std::lock_guard hold(lock_);
    over_ = true;
    for (task_record* t : open_) end(*t);
    open_.clear();
    count_.store(0, std::memory_order_seq_cst);
  }
  bool none() const { return count_.load(std::memory_order_seq_cst) == 0; }

 private:
  std::mutex lock_;
  std::vector<task_record*> open_;
  bool over_ = false;
  std::atomic<std::size_t> count_{0};  // the size of open_, for any thread
};

}  // namespace troupe::detail
