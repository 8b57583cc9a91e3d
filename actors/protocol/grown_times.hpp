// What this file is for: what calls take by now that were predicted before their kernel turned out to take far longer.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// The predictions of kernels that have grown much, by kernel and size of the data, as the cost model tells them apart.
/// The holder of the turn notes them; any thread asks, and waits for nobody.
class grown_times {
 public:
  /// Kernels, each with each size, of which it knows.
  static constexpr std::size_t capacity = 16;

  /// Notes that calls of the kernel on so many bytes are predicted to take `ns`. `much`: they were predicted to take
  /// far less; without it only what is known already is changed.
  void note(const kernel_info& kernel, std::uint64_t bytes, float ns, bool much) {
    const std::size_t n = count_.load(std::memory_order_relaxed), at = find(kernel, bytes, n);
    if (at == n) {
      if (!much) return;
      if (n == capacity) return are_all_.store(false, std::memory_order_release);
      all_[n].kernel = name_of(kernel);
      all_[n].size = size_of(bytes);
    }
    all_[at].ns.store(ns, std::memory_order_relaxed);
    if (at == n) count_.store(n + 1, std::memory_order_release);
  }
  /// Returns what such a call is predicted to take by now, in nanoseconds; 0: what was predicted before holds. Nothing:
  /// more kernels have grown than there is room for, and it may be one of them.
  std::optional<float> of(const kernel_info& kernel, std::uint64_t bytes) const {
    const bool are_all = are_all_.load(std::memory_order_acquire);
    const std::size_t n = count_.load(std::memory_order_acquire), at = find(kernel, bytes, n);
    if (at != n) return all_[at].ns.load(std::memory_order_relaxed);
    if (are_all) return 0.0f;
    return {};
  }

 private:
  struct entry {
    std::uint64_t kernel = 0;
    int size = 0;
    std::atomic<float> ns{0};  // the rest is written once
  };
  static std::uint64_t name_of(const kernel_info& k) {
    return k.key != 0 ? k.key : reinterpret_cast<std::uintptr_t>(&k);
  }
  static int size_of(std::uint64_t bytes) { return std::bit_width(bytes); }
  // Returns the place of the entry, or `n`.
  std::size_t find(const kernel_info& kernel, std::uint64_t bytes, std::size_t n) const {
    const std::uint64_t name = name_of(kernel);
    const int size = size_of(bytes);
    std::size_t i = 0;
    while (i < n && !(all_[i].kernel == name && all_[i].size == size)) ++i;
    return i;
  }

  std::atomic<std::size_t> count_{0};
  std::atomic<bool> are_all_{true};  // none was left out
  std::array<entry, capacity> all_;
};

}  // namespace troupe::detail
