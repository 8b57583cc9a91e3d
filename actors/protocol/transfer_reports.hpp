// What this file is for: how long copies took, on the way from the actors of devices to placement.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "actors/protocol/memory_space.hpp"
#include <troupe/detail/spin_lock.hpp>

namespace troupe::detail {

/// Any thread reports; the holder of the turn takes. Reports beyond those that fit are dropped: the next ones tell the
/// same.
class transfer_reports {
 public:
  void add(memory_space from, memory_space to, std::uint64_t bytes, float ns) {
    const std::lock_guard hold(lock_);
    const std::size_t n = count_.load(std::memory_order_relaxed);
    if (n == all_.size()) return;
    all_[n] = {from, to, bytes, ns};
    count_.store(n + 1, std::memory_order_relaxed);
  }
  /// Calls f(from, to, bytes, ns) for each report and clears them.
  template <class F>
  void take(F&& f) {
    if (count_.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard hold(lock_);
    for (std::size_t i = 0; i < count_.load(std::memory_order_relaxed); ++i)
      f(all_[i].from, all_[i].to, all_[i].bytes, all_[i].ns);
    count_.store(0, std::memory_order_relaxed);
  }

 private:
  struct report {
    memory_space from, to;
    std::uint64_t bytes;
    float ns;
  };
  spin_lock lock_;
  std::atomic<std::size_t> count_{0};
  std::array<report, 64> all_{};
};

}  // namespace troupe::detail
