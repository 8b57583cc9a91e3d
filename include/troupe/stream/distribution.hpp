// What this file is for: distributions of times: what a stream's report tells of latencies, and how they are recorded.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::stream {

/// The buckets of distributions: each power of two is cut into 64 equal parts, so what is told of a value is less than
/// 1 % beside it (HdrHistogram, Gil Tene). Values are nanoseconds; those above `most` count as `most`.
struct buckets {
  static constexpr std::size_t parts = 64;
  static constexpr std::uint64_t most = (std::uint64_t{1} << 42) - 1;  ///< 73 minutes
  static constexpr std::size_t count = 37 * parts + parts;
  static constexpr std::size_t of(std::uint64_t ns) {
    const std::uint64_t v = std::min(ns, most);
    const int shift = std::max(0, static_cast<int>(std::bit_width(v)) - 7);
    return static_cast<std::size_t>(shift) * parts + static_cast<std::size_t>(v >> shift);
  }
  /// The value in the middle of a bucket.
  static constexpr std::uint64_t middle(std::size_t bucket) {
    if (bucket < 2 * parts) return bucket;
    const std::size_t shift = bucket / parts - 1;
    return ((bucket - shift * parts) << shift) + (std::uint64_t{1} << shift) / 2;
  }
};

/// A distribution of times, as it was when it was asked for. A value; `+=` merges two of them.
class distribution {
 public:
  std::uint64_t count() const { return count_; }
  std::chrono::nanoseconds max() const { return std::chrono::nanoseconds(max_); }
  std::chrono::nanoseconds mean() const {
    return std::chrono::nanoseconds(count_ == 0 ? 0 : static_cast<std::int64_t>(sum_ / static_cast<double>(count_)));
  }
  /// The value that a part `q` (0 to 1) of all are not above; 0 of none. 0.99 is "p99".
  std::chrono::nanoseconds quantile(double q) const {
    if (count_ == 0) return {};
    if (q >= 1) return max();
    const double wanted = std::max(q, 0.0) * static_cast<double>(count_);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen != 0 && static_cast<double>(seen) >= wanted)
        return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(buckets::middle(i), max_)));
    }
    return max();
  }
  distribution& operator+=(const distribution& o) {
    if (o.counts_.empty()) return *this;
    counts_.resize(buckets::count);
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += o.counts_[i];
    count_ += o.count_;
    sum_ += o.sum_;
    max_ = std::max(max_, o.max_);
    return *this;
  }
  void add(std::chrono::nanoseconds value) {
    counts_.resize(buckets::count);
    const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(value.count(), 0));
    ++counts_[buckets::of(ns)];
    ++count_;
    sum_ += static_cast<double>(ns);
    max_ = std::max(max_, ns);
  }

 private:
  friend class recorder;
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0, max_ = 0;
  double sum_ = 0;
};

/// Records times into fixed memory, 19 KiB. One thread at a time records, any thread may look meanwhile.
class recorder {
 public:
  void record(std::int64_t ns) noexcept {
    const auto v = static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
    raise((*counts_)[buckets::of(v)], 1);
    raise(sum_, v);
    if (v > max_.load(std::memory_order_relaxed)) max_.store(v, std::memory_order_relaxed);
  }
  distribution read() const {
    distribution d;
    d.counts_.resize(buckets::count);
    for (std::size_t i = 0; i < buckets::count; ++i) {
      d.counts_[i] = (*counts_)[i].load(std::memory_order_relaxed);
      d.count_ += d.counts_[i];
    }
    d.sum_ = static_cast<double>(sum_.load(std::memory_order_relaxed));
    d.max_ = max_.load(std::memory_order_relaxed);
    return d;
  }

 private:
  static void raise(std::atomic<std::uint64_t>& c, std::uint64_t by) noexcept {
    c.store(c.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  using counts = std::array<std::atomic<std::uint64_t>, buckets::count>;
  std::unique_ptr<counts> counts_ = std::make_unique<counts>();
  std::atomic<std::uint64_t> sum_{0}, max_{0};
};

}  // namespace troupe::stream
