// What this file is for: what a transfer would have taken on a link that it shares with others, had it been alone.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A transfer of several that are in flight at once counts its share of the time, as a processor's time is counted.
// Whether the link takes them one after the other or in turns, on the average each has then taken as long as it would
// alone; from request to arrival all of them look slow, and most so where the link does best. Pure; times come from the
// caller.
#pragma once

#include <cstdint>

namespace troupe::logic {

class link_time {
 public:
  /// Notes that a transfer begins; pass the result to `end`.
  double begin(std::uint64_t now) {
    pass(now);
    ++under_way_;
    return own_;
  }
  /// Returns the transfer's own time, in the units of `now`.
  double end(std::uint64_t now, double begun) {
    pass(now);
    if (under_way_ > 0) --under_way_;
    return own_ - begun;
  }
  bool is_idle() const { return under_way_ == 0; }

 private:
  void pass(std::uint64_t now) {
    if (under_way_ > 0 && now > last_) own_ += static_cast<double>(now - last_) / under_way_;
    last_ = now;
  }

  std::uint64_t last_ = 0;
  double own_ = 0;  // the own time of a transfer in flight since the beginning
  int under_way_ = 0;
};

}  // namespace troupe::logic
