// What this file is for: how two flows are joined by key and time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <troupe/stream/time.hpp>

namespace troupe::stream {

/// Which items of two flows belong together, beside having the same key; made by `within`, `same_window`.
struct joining {
  enum class shape : std::uint8_t { interval, window };
  shape kind = shape::interval;
  std::chrono::nanoseconds before{0}, after{0};  ///< of an interval
  std::chrono::nanoseconds size{0};              ///< of a window
};
/// The second item's time is at most `before` earlier, and at most `after` later, than the first one's.
constexpr joining within(std::chrono::nanoseconds before, std::chrono::nanoseconds after) {
  return {joining::shape::interval, before, after, {}};
}
/// The times differ by `distance` at most, in either direction.
constexpr joining within(std::chrono::nanoseconds distance) { return within(distance, distance); }
/// Both are in the same one of the windows `tumbling(size)`.
constexpr joining same_window(std::chrono::nanoseconds size) { return {joining::shape::window, {}, {}, size}; }

struct join_options {
  /// Items of either flow that may be ahead, in event time, of what the other one has come to, 1 to 2^24; a flow that
  /// is further ahead waits in the edge before the stage. One that is idle, or has ended, is not waited for. To within
  /// 64 items, since watermarks are said so often; and what stands before a barrier is taken.
  std::size_t ahead = 65'536;
};

struct lookup_options {
  /// Items of the first flow that may wait until the table has come as far as they are, 1 to 2^24. Further ones wait in
  /// the edge before the stage.
  std::size_t waiting = 1024;
  /// Rows that may be ahead, in event time, of what the first flow has come to, 1 to 2^24, as for `join`; but the table
  /// does not wait while `waiting` items do.
  std::size_t ahead = 65'536;
};

}  // namespace troupe::stream
