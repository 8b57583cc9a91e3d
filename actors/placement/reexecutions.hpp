// What this file is for: long work that is done on threads of its own: calls that are repeated after a node has died.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "actors/execution/reexecution.hpp"

namespace troupe::detail {

/// Threads that repeat calls, one for each loss, what that may cost, and the number of bodies that they have run. Any
/// thread.
class reexecutions {
 public:
  /// `cost_max_ns`: what the calls that one loss repeats may take, from options::cluster.
  explicit reexecutions(double cost_max_ns) : cost_max_ns_(cost_max_ns) {}
  ~reexecutions() { wait(); }
  reexecutions(const reexecutions&) = delete;
  reexecutions& operator=(const reexecutions&) = delete;

  /// Sets the function that runs the work, instead of a thread for each. All such work must have ended before this is
  /// destroyed. Before the first `start`.
  void use(std::function<void(std::function<void()>)> run) { run_ = std::move(run); }
  /// Sets the function that takes tasks whose lost data exists again, or never will. Before the first `start`.
  void report_to(std::function<void(std::span<task_record* const>)> f) { report_ = std::move(f); }
  /// Reports such tasks; on the thread that did the work.
  void report(std::span<task_record* const> done) const { report_(done); }
  void start(std::function<void()> work) {
    if (run_) return run_(std::move(work));
    std::lock_guard hold(lock_);
    threads_.emplace_back(std::move(work));
  }
  /// Waits for the threads that have been started by now.
  void wait() {
    std::vector<std::thread> all;
    {
      std::lock_guard hold(lock_);
      all.swap(threads_);
    }
    for (std::thread& t : all) t.join();
  }

  /// Returns what the calls that one loss repeats may take.
  double cost_max_ns() const { return cost_max_ns_; }
  void count(const reexecuted_bodies& b) {
    run_bodies_.fetch_add(b.run, std::memory_order_relaxed);
    threw_.fetch_add(b.threw, std::memory_order_relaxed);
  }
  /// The bodies of all work that has ended.
  reexecuted_bodies bodies() const {
    return {run_bodies_.load(std::memory_order_relaxed), threw_.load(std::memory_order_relaxed)};
  }

 private:
  const double cost_max_ns_;
  std::function<void(std::function<void()>)> run_;  // null: a thread for each
  std::function<void(std::span<task_record* const>)> report_;
  std::mutex lock_;
  std::vector<std::thread> threads_;
  std::atomic<std::uint64_t> run_bodies_{0}, threw_{0};
};

}  // namespace troupe::detail
