// What this file is for: where threads sleep until a task is done.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// A few condition variables shared by all tasks. A task that no thread waits for costs nothing.
class wait_table {
 public:
  /// Sleeps until the task is done or the time has come; true if done.
  bool wait(task_record& t, std::chrono::steady_clock::time_point deadline) {
    bucket& b = of(t);
    std::unique_lock hold(b.lock);
    if ((t.phase.fetch_or(phase_watched, std::memory_order_acq_rel) & phase_mask) == phase_done) return true;
    const auto done = [&] { return (t.phase.load(std::memory_order_acquire) & phase_mask) == phase_done; };
    if (deadline == std::chrono::steady_clock::time_point::max()) {
      b.changed.wait(hold, done);
      return true;
    }
    return b.changed.wait_until(hold, deadline, done);
  }
  void announce(const task_record& t) noexcept {
    bucket& b = of(t);
    { std::lock_guard hold(b.lock); }
    b.changed.notify_all();
  }

 private:
  struct bucket {
    std::mutex lock;
    std::condition_variable changed;
  };
  bucket& of(const task_record& t) { return buckets_[(reinterpret_cast<std::uintptr_t>(&t) >> 8) % buckets_.size()]; }
  std::array<bucket, 16> buckets_;
};

}  // namespace troupe::detail
