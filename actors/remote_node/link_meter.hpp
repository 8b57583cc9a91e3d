// What this file is for: how long bytes take to a node and back, each way, when transfers share the link.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mutex>

#include "actors/logic/scheduling/link_time.hpp"
#include "actors/protocol/clock.hpp"

namespace troupe::detail {

/// Measures the own time of each transfer to a node (`out`) and from it (`home`); see logic::link_time.
///
/// A part of a node's actor. It has a lock of its own, because the transport's bulk thread reports ends of transfers:
/// any thread may call, whatever locks it holds. Needs the runtime's clock, which must outlive it.
class link_meter {
 public:
  explicit link_meter(const runtime_clock& c) : clock_(c) {}

  /// Notes that a transfer begins; pass the result to the matching end.
  double begin_out() { return begin(out_); }
  double begin_home() { return begin(home_); }
  /// Returns the transfer's own time in nanoseconds.
  float end_out(double begun) { return end(out_, begun); }
  float end_home(double begun) { return end(home_, begun); }
  /// True if no transfer is under way, either way.
  bool is_idle() {
    std::lock_guard hold(lock_);
    return out_.is_idle() && home_.is_idle();
  }
  /// Forgets all transfers: another node has joined in this place.
  void clear() {
    std::lock_guard hold(lock_);
    out_ = home_ = {};
  }

 private:
  double begin(logic::link_time& s) {
    std::lock_guard hold(lock_);
    return s.begin(clock_.ticks());
  }
  float end(logic::link_time& s, double begun) {
    std::lock_guard hold(lock_);
    return static_cast<float>(s.end(clock_.ticks(), begun) * clock_.ns_per_tick());
  }

  const runtime_clock& clock_;
  std::mutex lock_;
  logic::link_time out_, home_;
};

}  // namespace troupe::detail
