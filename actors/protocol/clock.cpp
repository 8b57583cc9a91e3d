// What this file is for: calibration of ticks against the steady clock.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/protocol/clock.hpp"

namespace troupe::detail {

namespace {
double calibrate() {
  using clock = std::chrono::steady_clock;
  const auto c0 = clock::now();
  const std::uint64_t t0 = ticks();
  // 300 us give a ratio good to about 1e-4: the clock's own resolution is some 30 ns.
  auto c1 = c0;
  std::uint64_t t1 = t0;
  do {
    c1 = clock::now();
    t1 = ticks();
  } while (c1 - c0 < std::chrono::microseconds(300));
  if (t1 == t0) return 1.0;
  return std::chrono::duration<double, std::nano>(c1 - c0).count() / static_cast<double>(t1 - t0);
}
}  // namespace

double ns_per_tick() {
  static const double ratio = calibrate();
  return ratio;
}

}  // namespace troupe::detail
