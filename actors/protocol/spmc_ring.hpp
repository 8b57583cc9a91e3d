// What this file is for: a few tasks that one thread works through and that others may take when it is held up.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace troupe::detail {

/// A ring that one thread pushes into and every thread pops from, oldest first. Positions only grow, so that a pop
/// that came too late fails and is tried again; no thread waits for another.
template <class T, std::size_t Capacity>
class spmc_ring {
 public:
  static_assert((Capacity & (Capacity - 1)) == 0);
  static constexpr std::size_t capacity = Capacity;

  // ---- the owner ----------------------------------------------------------------------------------------------------
  std::size_t room() const {
    return Capacity -
           static_cast<std::size_t>(tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire));
  }
  /// Appends an item. There must be room.
  void push(T* v) {
    const std::uint64_t t = tail_.load(std::memory_order_relaxed);
    slots_[t % Capacity].store(v, std::memory_order_relaxed);
    tail_.store(t + 1, std::memory_order_release);
  }

  // ---- any thread ---------------------------------------------------------------------------------------------------
  /// Takes the oldest item; null if empty.
  T* pop() {
    std::uint64_t h = head_.load(std::memory_order_acquire);
    for (;;) {
      if (h >= tail_.load(std::memory_order_acquire)) return nullptr;
      T* v = slots_[h % Capacity].load(std::memory_order_relaxed);
      if (head_.compare_exchange_weak(h, h + 1, std::memory_order_acq_rel)) return v;
    }
  }
  /// Takes all items; returns how many. `out` has room for Capacity.
  std::size_t pop_all(T** out) {
    std::uint64_t h = head_.load(std::memory_order_acquire);
    for (;;) {
      const std::uint64_t t = tail_.load(std::memory_order_acquire);
      if (h >= t) return 0;
      const auto n = static_cast<std::size_t>(t - h);
      if (n > Capacity) {  // others have popped since
        h = head_.load(std::memory_order_acquire);
        continue;
      }
      for (std::size_t i = 0; i < n; ++i) out[i] = slots_[(h + i) % Capacity].load(std::memory_order_relaxed);
      if (head_.compare_exchange_weak(h, t, std::memory_order_acq_rel)) return n;
    }
  }
  std::size_t size() const {
    const std::uint64_t h = head_.load(std::memory_order_relaxed), t = tail_.load(std::memory_order_relaxed);
    return t > h ? static_cast<std::size_t>(t - h) : 0;
  }
  bool empty() const { return size() == 0; }

 private:
  std::atomic<std::uint64_t> head_{0};
  std::atomic<std::uint64_t> tail_{0};
  std::array<std::atomic<T*>, Capacity> slots_{};
};

}  // namespace troupe::detail
