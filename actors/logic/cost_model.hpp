// What this file is for: what a task will take: run times learned per kernel, size and kind of device; transfers per edge.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure: no clock, no thread. Run times are medians of recent samples, keyed by (kernel, size class, kind of device);
// the first sample of a key is dropped (cold caches, first touch of pages). Transfers are latency plus bytes over
// bandwidth, per edge between memory spaces.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <troupe/detail/task.hpp>

namespace troupe::logic {

/// Bytes touched, as a power of two.
using size_class = std::uint8_t;
size_class size_class_of(std::uint64_t bytes);

class run_time {
 public:
  static constexpr std::uint32_t window = 9;
  /// Nanoseconds; zero while unknown.
  float predicted_ns() const { return median_; }
  bool known() const { return seen_ > 1; }
  void learn(float ns);
  /// How many samples were offered, the dropped first one included.
  std::uint32_t seen() const { return seen_; }

 private:
  std::array<float, window> recent_{};
  std::uint32_t seen_ = 0;
  float median_ = 0;
};

struct edge_cost {
  float latency_ns = 0;
  float bytes_per_ns = 0;  // zero: free (the same memory)
};

class cost_model {
 public:
  cost_model();

  /// The entry for a kernel; a reference stays valid.
  run_time& of(const detail::kernel_info&, size_class, device_kind);

  void set_edge(std::uint16_t from, std::uint16_t to, edge_cost);
  void learn_transfer(std::uint16_t from, std::uint16_t to, std::uint64_t bytes, float ns);
  float transfer_ns(std::uint16_t from, std::uint16_t to, std::uint64_t bytes) const;

 private:
  struct shortcut {
    const detail::kernel_info* kernel = nullptr;
    std::uint32_t rest = 0;
    run_time* entry = nullptr;
  };
  static constexpr std::size_t shortcut_count = 64;
  std::array<shortcut, shortcut_count> shortcuts_{};
  std::unordered_map<std::uint64_t, std::unique_ptr<run_time>> entries_;
  std::unordered_map<std::uint32_t, edge_cost> edges_;
};

/// One executor as a candidate for a task.
struct offer {
  std::uint16_t executor = 0;
  float queue_ns = 0;     // until it is free
  float transfer_ns = 0;  // until the data is there
  float run_ns = 0;
  std::uint64_t bytes_missing = 0;
  float finish_ns() const { return (queue_ns > transfer_ns ? queue_ns : transfer_ns) + run_ns; }
};

/// The index of the offer with the earliest finish; ties go to fewer bytes moved, then to the lower id.
std::size_t best_offer(std::span<const offer>);

}  // namespace troupe::logic
