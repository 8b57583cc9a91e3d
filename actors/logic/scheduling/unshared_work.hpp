// What this file is for: when a thread that works alone has had so much work beside its own that another one is woken.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A few small tasks at a time are not worth a wake-up, so the thread that made them ready runs them all. In a program
// of many small steps that goes on for ever, and one core does what two could do. So what such a thread keeps is added
// up: when that is as much work as a wake-up takes, the wake-up would have paid by now.
#pragma once

#include <algorithm>

namespace troupe::logic {

/// The work that one thread has had beside its own while nobody looked for some. Pure; times are in one unit.
class unshared_work {
 public:
  /// Notes work that another thread could have begun meanwhile. Returns true if one is to be woken: together it has
  /// reached what a wake-up takes, or a multiple where the one before has changed nothing. `busy`: time that the thread
  /// has worked so far.
  bool add(double work, double wake_up, double busy) {
    sum_ += work;
    if (sum_ < wake_up) return false;
    // Where another thread takes a part, little of the time adds to the sum.
    const double times = busy - busy_before_ > little * sum_ ? 1 : factor_;
    if (sum_ < times * wake_up) return false;
    factor_ = std::min(2 * times, factor_max);
    busy_before_ = busy;
    sum_ = 0;
    return true;
  }

 private:
  static constexpr double little = 8, factor_max = 64;

  double sum_ = 0;
  double factor_ = 1;       // of what a wake-up takes, if the one before has changed nothing
  double busy_before_ = 0;  // when a thread was woken last
};

}  // namespace troupe::logic
