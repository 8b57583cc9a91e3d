// What this file is for: arithmetic on times of items: sums that do not overflow, what a function says of an item's
// time, the windows that a time lies in.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace troupe::detail::streams {

inline std::int64_t saturated(std::int64_t a, std::int64_t b) {
  std::int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min() + 1;
}

/// Times of items are this far from 1970 at most, in ns, and windows this long, so that sums of the two exist: 146 and
/// 36 years.
inline constexpr std::int64_t event_ns_max = std::int64_t{1} << 62, window_ns_max = std::int64_t{1} << 60;

/// The ns since 1970 that a stage's function says; whole numbers are ns. False: it is out of range, or not a number.
template <class X>
bool event_ns_of(const X& x, std::int64_t& to) {
  if constexpr (std::is_integral_v<X>) {
    if (!std::in_range<std::int64_t>(x)) return false;
    to = static_cast<std::int64_t>(x);
    return to >= -event_ns_max && to <= event_ns_max;
  } else if constexpr (requires { x.time_since_epoch(); }) {
    return event_ns_of(x.time_since_epoch(), to);
  } else {
    constexpr auto most = static_cast<long double>(event_ns_max);
    const auto wide = std::chrono::duration<long double, std::nano>(x).count();
    if (!(wide >= -most && wide <= most)) return false;
    to = std::chrono::duration_cast<std::chrono::nanoseconds>(x).count();
    return true;
  }
}

template <class X>
inline constexpr bool says_time = std::is_integral_v<X> || requires(const X& x) {
  x.time_since_epoch();
}
|| requires(const X& x) { std::chrono::duration<long double, std::nano>(x); };

/// The windows of fixed size that a time lies in: [first, last], by their beginnings, `slide` apart.
struct window_starts {
  std::int64_t first, last;
  static window_starts of(std::int64_t at, std::int64_t size, std::int64_t slide) {
    const auto floor = [&](std::int64_t t) {
      const std::int64_t rest = t % slide;
      return t - rest - (rest < 0 ? slide : 0);
    };
    return {floor(at - size) + slide, floor(at)};
  }
};

}  // namespace troupe::detail::streams
