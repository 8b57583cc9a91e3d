// What this file is for: bodies of a core group that wait for other tasks: their slots, and what they were to take.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "actors/core_group/worker.hpp"
#include "actors/protocol/executor.hpp"

namespace troupe::detail {

/// Sums over the bodies that wait. Any thread.
class waiting_bodies {
 public:
  /// Adds (1) or takes off (-1) a body.
  void count(const worker::standing& body, int sign) {
    slots_.fetch_add(sign * body.slots, std::memory_order_relaxed);
    ns_.fetch_add(sign * static_cast<std::int64_t>(body.predicted_ns), std::memory_order_relaxed);
  }
  waiting_load load() const {
    return {slots_.load(std::memory_order_relaxed), static_cast<float>(ns_.load(std::memory_order_relaxed))};
  }

 private:
  std::atomic<int> slots_{0};
  std::atomic<std::int64_t> ns_{0};  // predicted run time
};

}  // namespace troupe::detail
