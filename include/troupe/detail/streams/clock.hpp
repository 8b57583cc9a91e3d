// What this file is for: the clocks that streams go by: those of the machine, or a simulation's.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe::detail::streams {

/// Clocks of a simulation, which runs all parts of a stream on one thread.
class simulated_clocks {
 public:
  virtual std::int64_t steady_ns() noexcept = 0;
  virtual std::int64_t wall_ns() noexcept = 0;

 protected:
  ~simulated_clocks() = default;
};
/// Those of this thread; null: it goes by the machine's.
inline constinit thread_local simulated_clocks* simulated = nullptr;

/// The steady clock: for everything that is waited for or measured.
inline std::int64_t now_ns() noexcept {
  if (simulated) [[unlikely]]
    return simulated->steady_ns();
  return std::chrono::steady_clock::now().time_since_epoch().count();
}
inline std::chrono::steady_clock::time_point now() noexcept {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(now_ns()));
}
/// Since 1970, in ns; it may jump.
inline std::int64_t wall_ns() noexcept {
  if (simulated) [[unlikely]]
    return simulated->wall_ns();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace troupe::detail::streams
