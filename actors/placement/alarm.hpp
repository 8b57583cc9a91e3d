// What this file is for: the alarm that makes placement look again when time has passed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

namespace troupe::detail {

/// An alarm that is set for the earliest of all points in time that were asked for. With placement's turn only, but
/// `ring_now`, `ring_soon` and `ring_later`. An alarm that is not needed any more rings all the same; placement looks
/// what is due.
class alarm {
 public:
  /// `set` has placement called after a delay; any thread calls it. Without it nothing ever rings.
  void use(std::function<void(std::chrono::milliseconds)> set) { set_ = std::move(set); }
  /// Has the alarm ring at `due` (ticks; 0: not at all), if it does not ring before that anyway.
  void ring_at(std::uint64_t due, std::uint64_t now, double ns_per_tick) {
    if (due == 0 || (due_ != 0 && due_ <= due) || !set_) return;
    due_ = due;
    const double ns = static_cast<double>(due - std::min(due, now)) * ns_per_tick;
    set_(std::chrono::milliseconds(1 + static_cast<std::int64_t>(ns / 1e6)));
  }
  /// Notes that the alarm has rung.
  void rang() {
    due_ = 0;
    is_soon_.store(false, std::memory_order_relaxed);
    is_later_.store(false, std::memory_order_relaxed);
  }
  /// Rings as soon as possible. Any thread, whatever locks it holds.
  void ring_now() const {
    if (set_) set_(std::chrono::milliseconds(0));
  }
  /// Rings in a millisecond, once for all that ask meanwhile. Any thread.
  void ring_soon() { ring_once(is_soon_, std::chrono::milliseconds(1)); }
  /// The same, in 20 ms: for what somebody will most probably have seen to by then. To ring takes the threads that keep
  /// the time four switches.
  void ring_later() { ring_once(is_later_, std::chrono::milliseconds(20)); }

 private:
  void ring_once(std::atomic<bool>& is_set, std::chrono::milliseconds after) {
    if (set_ && !is_set.load(std::memory_order_relaxed) && !is_set.exchange(true, std::memory_order_relaxed))
      set_(after);
  }

  std::function<void(std::chrono::milliseconds)> set_;
  std::uint64_t due_ = 0;  // when it will ring, in ticks; 0: it is not set
  std::atomic<bool> is_soon_{false}, is_later_{false};
};

}  // namespace troupe::detail
