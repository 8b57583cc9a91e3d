// What flows in the rows about streams: numbers, frames, items that are due at a time; and what must come out.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../contender.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

enum class stream_kind {
  fused,   ///< numbers; stages may be one call after the other
  edges,   ///< numbers; what lies between two stages may wait there, 64 at most
  frames,  ///< 1 MiB, each stage changes all of it; few are in memory
  timed    ///< numbers that are due at a rate; their latency
};

/// One stream through a number of stages. Used by one thread at a time.
class stream_problem {
 public:
  stream_problem(stream_kind k, int number_of_stages, std::size_t number_of_items)
      : kind(k), stages(number_of_stages), items(number_of_items) {}

  static constexpr std::size_t frame_bytes = std::size_t{1} << 20, frames_max = 4;
  double rate = 20'000;  ///< of `timed`, in items a second; 0: each is due at once

  /// A frame as it leaves the source, a stage's work on it, and what the sink makes of it.
  static void fill(std::vector<std::uint8_t>& f, std::uint64_t i) {
    f.assign(frame_bytes, static_cast<std::uint8_t>(i));
  }
  static void change(std::vector<std::uint8_t>& f) {
    for (std::uint8_t& b : f) b = static_cast<std::uint8_t>(b + 1);
  }
  void take(const std::vector<std::uint8_t>& f) { take(f.front() + std::uint64_t{f.back()}); }
  void take(std::uint64_t number) {
    sum_ += number;
    ++taken_;
  }
  /// The time at which an item is due, in ns on the steady clock; waits for it, as a sensor would.
  static std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
  std::int64_t wait_until_due(std::size_t i) {
    if (rate == 0) return now();
    if (i == 0) begin_ = now() + 1'000'000;
    const std::int64_t due = begin_ + static_cast<std::int64_t>(1e9 / rate * static_cast<double>(i));
    while (now() < due) {
    }
    return due;
  }
  void take_due(std::int64_t due) {
    latency_.push_back(now() - due);
    ++taken_;
  }

  void check() const {
    if (taken_ != items)
      throw wrong_answer("a stream of " + std::to_string(items) + " items delivered " + std::to_string(taken_));
    std::uint64_t wanted = 0;
    const auto k = static_cast<std::uint64_t>(stages);
    if (kind == stream_kind::timed) return;
    if (kind == stream_kind::frames)
      for (std::uint64_t i = 0; i < items; ++i) wanted += 2 * ((i + k) & 255);
    else
      wanted = items * (items - 1) / 2 + k * items;
    if (sum_ != wanted) throw wrong_answer("a stream's items are not what its stages make of them");
  }
  /// Returns the q-quantile of the latencies, in us.
  double quantile_us(double q) {
    std::sort(latency_.begin(), latency_.end());
    return static_cast<double>(latency_[std::min(latency_.size() - 1,
                                                 static_cast<std::size_t>(q * static_cast<double>(latency_.size())))]) /
           1e3;
  }

  const stream_kind kind;
  const int stages;
  const std::size_t items;

 private:
  std::uint64_t sum_ = 0;
  std::size_t taken_ = 0;
  std::int64_t begin_ = 0;
  std::vector<std::int64_t> latency_;
};

}  // namespace bench
