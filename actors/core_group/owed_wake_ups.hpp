// What this file is for: threads of a core group that are to be woken or made once the turn has been left.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>

namespace troupe::detail {

/// Wake-ups and spare threads that are added, mostly with placement's turn, and taken without it. Any thread.
class owed_wake_ups {
 public:
  void add(std::size_t threads) { far_.fetch_add(threads, std::memory_order_release); }
  /// Adds one of a thread near by, for work that is worth none.
  void add_near() { near_.store(true, std::memory_order_release); }
  /// Adds spare threads that are to be made.
  void add_spares(int n) { spares_.fetch_add(n, std::memory_order_release); }
  bool any() const {
    return far_.load(std::memory_order_relaxed) != 0 || near_.load(std::memory_order_relaxed) ||
           spares_.load(std::memory_order_relaxed) != 0;
  }
  std::size_t take() { return far_.exchange(0, std::memory_order_acquire); }
  int take_spares() { return spares_.exchange(0, std::memory_order_acquire); }
  bool take_near() { return near_.exchange(false, std::memory_order_acquire); }

 private:
  std::atomic<std::size_t> far_{0};
  std::atomic<bool> near_{false};
  std::atomic<int> spares_{0};
};

}  // namespace troupe::detail
