// What this file is for: time for measuring: cheap ticks inside a process, turned into nanoseconds when read.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace troupe::detail {

/// Ticks of the time stamp counter where there is a constant one, else of the steady clock.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// Nanoseconds per tick. Measured once per process, in well under a millisecond.
double ns_per_tick();

/// The clock of one runtime: that of the machine, or one that a simulation moves.
class runtime_clock {
 public:
  runtime_clock() = default;
  /// `now_ns` returns the time of a simulation; it is called on any thread whenever the clock is read.
  explicit runtime_clock(std::function<std::uint64_t()> now_ns) : now_ns_(std::move(now_ns)) {}

  std::uint64_t ticks() const { return now_ns_ ? now_ns_() : detail::ticks(); }
  double ns_per_tick() const { return now_ns_ ? 1.0 : detail::ns_per_tick(); }
  float ns_since(std::uint64_t begin) const {
    return static_cast<float>(static_cast<double>(ticks() - begin) * ns_per_tick());
  }

 private:
  std::function<std::uint64_t()> now_ns_;
};

}  // namespace troupe::detail
