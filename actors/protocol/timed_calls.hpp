// What this file is for: measured times of calls on their way from the threads that ran them to the cost model.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <troupe/detail/spin_lock.hpp>

namespace troupe::detail {

struct kernel_info;

/// How long a call has taken; `bytes`: of all that it names.
struct timed_call {
  const kernel_info* kernel = nullptr;
  std::uint64_t bytes = 0;
  float measured_ns = 0, predicted_ns = 0;
  std::uint16_t executor = 0;  // where it ran
};

/// Any thread adds; the holder of the turn takes. Calls beyond those that fit are dropped: the next ones tell the same.
class timed_calls {
 public:
  /// `urgent`: the call was not what was predicted, so that a turn is to be taken for it.
  void add(const timed_call& c, bool urgent) {
    const std::lock_guard hold(lock_);
    const std::size_t n = count_.load(std::memory_order_relaxed);
    if (n < all_.size()) {
      all_[n] = c;
      count_.store(n + 1, std::memory_order_relaxed);
    }
    if (urgent || n >= all_.size() / 2) urgent_.store(true, std::memory_order_relaxed);
  }
  /// True if some are urgent, or many wait.
  bool are_urgent() const { return urgent_.load(std::memory_order_relaxed); }
  /// Calls f(timed_call) for each and forgets them.
  template <class F>
  void take(F&& f) {
    if (count_.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard hold(lock_);
    for (std::size_t i = 0; i < count_.load(std::memory_order_relaxed); ++i) f(all_[i]);
    count_.store(0, std::memory_order_relaxed);
    urgent_.store(false, std::memory_order_relaxed);
  }

 private:
  spin_lock lock_;
  std::atomic<std::size_t> count_{0};
  std::atomic<bool> urgent_{false};
  std::array<timed_call, 64> all_{};
};

}  // namespace troupe::detail
