// What this file is for: the time at which a limit has passed, for limits of any size and type.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <chrono>

namespace troupe::detail {

/// The limit from `now` on; where the clock does not reach that far, its last moment, which stands for ever. A limit that
/// is negative or not a number has passed.
template <class Rep, class Period>
std::chrono::steady_clock::time_point deadline_after(
    std::chrono::duration<Rep, Period> limit,
    std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) {
  using clock = std::chrono::steady_clock;
  // Compared before it is converted: hours::max() is no number of nanoseconds.
  using wide = std::chrono::duration<long double, clock::period>;
  const wide wanted(limit);
  if (!(wanted > wide::zero())) return now;
  if (wanted >= wide(clock::time_point::max() - now)) return clock::time_point::max();
  return now + std::chrono::duration_cast<clock::duration>(limit);
}

}  // namespace troupe::detail
