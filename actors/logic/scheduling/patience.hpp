// What this file is for: how long a thread without work looks for some before it sleeps.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A thread that looks is there at once when work comes, and has used its core for nothing when none does. A thread that
// sleeps costs a wake-up: some time of the thread that wakes it, and the time until it runs. To look pays if the time
// that is lost by looking, in the mean of the latest waits, is less than a wake-up costs.
#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe::logic {

/// The waits of one thread, and what follows from them. Pure; times are ticks.
class patience {
 public:
  /// `limit`: a thread looks no longer than that at a time.
  explicit patience(std::uint64_t limit) : limit_(limit) {}

  /// Notes a wait for work that has ended: how long it was, from when the thread ran dry to when work came.
  void waited(std::uint64_t ticks) {
    const bool in_time = ticks <= limit_;
    in_time_ += weight * ((in_time ? 1.0f : 0.0f) - in_time_);
    looked_ += weight * (static_cast<float>(std::min(ticks, limit_)) - looked_);
  }
  /// Returns how long to look, where a wake-up costs `wake`: the limit, or not at all.
  std::uint64_t looks_for(std::uint64_t wake) const {
    return looked_ < in_time_ * static_cast<float>(wake) ? limit_ : 0;
  }

 private:
  static constexpr float weight = 1.0f / 8;

  std::uint64_t limit_;
  float in_time_ = 0;  // share of the waits that ended within the limit
  float looked_ = 0;   // mean time that looking takes
};

}  // namespace troupe::logic
