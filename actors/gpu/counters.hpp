// What this file is for: what a device has done, for reports.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <troupe/report.hpp>

namespace troupe::detail {

/// Counters that the device's turn writes and any thread reads.
struct gpu_counters {
  std::atomic<std::uint64_t> tasks{0}, failed{0}, chained{0}, by_waiters{0}, replays{0}, busy_ns{0}, bytes{0};

  static void add(std::atomic<std::uint64_t>& n, std::uint64_t more = 1) {
    n.fetch_add(more, std::memory_order_relaxed);
  }
  void report(executor_report& r) const {
    r.tasks = tasks.load(std::memory_order_relaxed);
    r.failed = failed.load(std::memory_order_relaxed);
    r.replays = replays.load(std::memory_order_relaxed);
    r.launched_by_waiters = by_waiters.load(std::memory_order_relaxed);
    r.chained = chained.load(std::memory_order_relaxed);
    r.busy = std::chrono::nanoseconds(busy_ns.load(std::memory_order_relaxed));
    r.bytes_moved = bytes.load(std::memory_order_relaxed);
  }
};

}  // namespace troupe::detail
