// What this file is for: time for measuring: cheap ticks inside a process, turned into nanoseconds when somebody reads them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

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

}  // namespace troupe::detail
