// What this file is for: how long tasks of a device take, and how long one may.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe::detail {

/// A device's actor counts in ticks, which are cheap, and tells nanoseconds. Any thread; nothing changes.
class gpu_stopwatch {
 public:
  /// `limit`: of one task, 0 for none. `tick_ns`: the length of a tick of `ticks()`.
  gpu_stopwatch(std::chrono::nanoseconds limit, double tick_ns)
      : tick_ns_(tick_ns), limit_(limit), limit_ticks_(ticks_of(limit)) {}

  double tick_ns() const { return tick_ns_; }
  double ns_of(std::uint64_t ticks) const { return static_cast<double>(ticks) * tick_ns_; }
  std::uint64_t ticks_of(std::chrono::nanoseconds t) const {
    return static_cast<std::uint64_t>(static_cast<double>(t.count()) / tick_ns_);
  }

  bool has_limit() const { return limit_ticks_ != 0; }
  /// True if a task that began at `begun` takes longer than it may, where there is a limit. Both in ticks.
  bool is_over_limit(std::uint64_t begun, std::uint64_t now) const { return now - begun > limit_ticks_; }
  /// Returns how often somebody should look whether a task is over its limit; 0: there is no need to.
  std::chrono::nanoseconds look_every() const { return has_limit() ? limit_ / 4 : std::chrono::nanoseconds(0); }
  std::chrono::milliseconds limit() const { return std::chrono::duration_cast<std::chrono::milliseconds>(limit_); }

 private:
  const double tick_ns_;
  const std::chrono::nanoseconds limit_;
  const std::uint64_t limit_ticks_;
};

}  // namespace troupe::detail
