// What this file is for: how long a thread that has just heard something looks for more before it sleeps.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// To wake a thread on a core that has gone to sleep takes tens of microseconds, more than most messages take on their
// way. A thread that looks gives its core away between two looks. But then it is no sleeper any more, which a kernel
// lets go first when there is something for it: where others want the core it would come back late. So it looks only
// where none do.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace troupe::net {

/// The looks of one thread.
class adaptive_spin {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::nanoseconds;

  /// Notes that there has been something at `now`. True: looking for `at_most` longer is worth it.
  bool begin(time_point now, duration at_most) {
    until_ = now + at_most;
    return at_most.count() > 0 && now >= not_before_;
  }
  /// After a look in vain, and after the core was given away from `before` to `after`: look again?
  bool goes_on(time_point before, time_point after) {
    if (after - before > somebody) {  // somebody else has had it
      not_before_ = after + pause_;
      pause_ = std::min(2 * pause_, pause_max);
      return false;
    }
    if (after < until_) return true;
    pause_ = pause_min;
    return false;
  }
  /// The same, giving it away.
  bool goes_on() {
    const auto before = std::chrono::steady_clock::now();
    std::this_thread::yield();
    return goes_on(before, std::chrono::steady_clock::now());
  }

  /// A core that no other thread wants is back sooner than that, also where others look for something on it and find
  /// it. A thread that computes keeps it for longer: the kernel lets it, for most of a millisecond at least.
  static constexpr duration somebody = std::chrono::microseconds(60);
  /// Nobody looks for so long after somebody else has had the core, twice as long the next time.
  static constexpr duration pause_min = std::chrono::milliseconds(10), pause_max = std::chrono::seconds(1);

 private:
  time_point until_{}, not_before_{};
  duration pause_ = pause_min;
};

}  // namespace troupe::net
