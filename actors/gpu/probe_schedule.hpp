// What this file is for: when a device that has nothing to do looks what its link costs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace troupe::detail {

/// The first look is some time after the last task has ended. Each that agrees with what is believed puts the next one
/// off, and after some there are no more until tasks have run. With the device's turn.
class probe_schedule {
 public:
  /// Time without a task before the first look, and four times as long before each that follows one that agreed.
  static constexpr double idle_ns = 100e6, idle_factor = 4;
  /// Looks that agree, after which there are no more until something has run.
  static constexpr int looks = 3;

  explicit probe_schedule(double tick_ns) : tick_ns_(tick_ns) {}

  /// Notes how many tasks have run by now.
  void note_ran(std::uint64_t tasks, std::uint64_t now) {
    if (at_ != 0 && tasks == ran_) return;
    ran_ = tasks;
    left_ = looks;
    at_ = now + ticks_of(idle_ns);
  }
  bool any_left() const { return left_ != 0; }
  /// Returns the time until the next look is due, or 0.
  std::chrono::nanoseconds left(std::uint64_t now) const {
    const double ns = static_cast<double>(static_cast<std::int64_t>(at_ - now)) * tick_ns_;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(std::max(ns, 0.0)));
  }
  /// Notes a look, and whether it agreed.
  void looked(bool as_believed, std::uint64_t now) {
    if (as_believed) --left_;
    at_ = now + ticks_of(as_believed ? idle_ns * (looks - left_) * idle_factor : idle_ns);
  }

 private:
  std::uint64_t ticks_of(double ns) const { return static_cast<std::uint64_t>(ns / tick_ns_); }

  const double tick_ns_;
  int left_ = 0;
  std::uint64_t at_ = 0, ran_ = 0;  // ticks; tasks that had run
};

}  // namespace troupe::detail
