// What this file is for: when the tasks on each lane of a device have ended, from which follows how long each took.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace troupe::detail {

/// Times in ticks. Ends are seen in looks: `begin_look`, `count` for each task that has ended, `served` for each,
/// `end_look`. With the device's turn.
class lane_clocks {
 public:
  explicit lane_clocks(std::size_t lanes) : lanes_(lanes) {}
  /// Forgets all: the device has been opened anew.
  void reset() {
    for (clock& c : lanes_) c = {};
  }

  void begin_look() {
    for (clock& c : lanes_) c.ended = 0;
  }
  void count(int lane) { ++at(lane).ended; }
  /// Returns when the device began with a task that was enqueued at `enqueued` and has ended by now: it may have waited
  /// for the one before it on its lane. Those that are seen to have ended together share the time.
  std::uint64_t served(int lane, std::uint64_t enqueued, std::uint64_t now) const {
    return now - (now - began(lane, enqueued)) / static_cast<std::uint64_t>(std::max(at(lane).ended, 1));
  }
  void end_look(std::uint64_t now) {
    for (clock& c : lanes_)
      if (c.ended != 0) c.last_end = now;
  }

  /// Returns the earliest time at which the device can have begun with what was enqueued then.
  std::uint64_t began(int lane, std::uint64_t enqueued) const { return std::max(enqueued, at(lane).last_end); }
  /// Notes that something has ended on the lane.
  void ended(int lane, std::uint64_t now) { at(lane).last_end = now; }

  /// Notes that no thread looks for a while: the next ends are seen later than they happen.
  void sleep() { slept_ = true; }
  /// True if a thread has looked since the last call without a pause.
  bool was_awake() { return !std::exchange(slept_, false); }

 private:
  struct clock {
    std::uint64_t last_end = 0;
    int ended = 0;  // tasks, at the last look
  };
  clock& at(int lane) { return lanes_[static_cast<std::size_t>(lane)]; }
  const clock& at(int lane) const { return lanes_[static_cast<std::size_t>(lane)]; }

  std::vector<clock> lanes_;
  bool slept_ = false;
};

}  // namespace troupe::detail
