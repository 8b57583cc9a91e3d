// What this file is for: how far the lanes of a device have come, and which lanes wait for which.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Owned by the device's actor. A ticket is promised when work is enqueued and recorded when somebody needs it, at the
// latest when the actor has enqueued all there is: small kernels in a row share one.
#pragma once

#include <cstdint>
#include <vector>

#include "devices/accelerator.hpp"

namespace troupe::detail {

/// Lanes for copies in and for copies out; the others compute.
inline constexpr int lane_in = 0, lane_out = 1, gpu_copy_lanes = 2;

class gpu_lanes {
 public:
  /// Another device, or none. Somebody may have used its lanes before.
  void use(devices::accelerator* device, int lanes) {
    device_ = device;
    lanes_.assign(static_cast<std::size_t>(lanes), {});
    for (int l = 0; device && l < lanes; ++l) of(l).recorded = device->recorded(l);
  }

  /// The end of what has been enqueued on the lane.
  devices::ticket promise(int lane) {
    one& l = of(lane);
    ++l.owed;
    return l.recorded + 1;
  }
  /// Tickets promised and not recorded.
  int owed(int lane) const { return of(lane).owed; }
  void keep_promise(int lane) {
    if (of(lane).owed != 0) record(lane, false);
  }
  void keep_promises() {
    for (int l = 0; l < size(); ++l) keep_promise(l);
  }
  /// The listener is called once the lane has reached its end so far.
  void ring_at_end(int lane) {
    one& l = of(lane);
    if (l.rings_at == l.recorded && l.owed == 0) return;
    record(lane, true);
    l.rings_at = l.recorded;
  }
  /// Makes all work enqueued on `lane` from now on wait for that ticket of `other`.
  void wait(int lane, int other, devices::ticket t) {
    if (lane == other || has_reached(other, t)) return;
    if (t > of(other).recorded) keep_promise(other);
    device_->wait(lane, other, t);
  }
  /// Notes that a routine has used the lane directly; no ticket was owed.
  void note_used(int lane) {
    of(lane).recorded = device_->recorded(lane);
    look(lane);
  }
  /// Asks the device how far the lane has come; throws what it has to complain about.
  void look(int lane) { of(lane).reached = device_->completed(lane); }
  bool is_behind(int lane) const { return of(lane).reached < of(lane).recorded; }
  bool has_reached(int lane, devices::ticket t) const { return t <= of(lane).reached; }
  int size() const { return static_cast<int>(lanes_.size()); }

 private:
  struct one {
    devices::ticket recorded = 0, reached = 0, rings_at = 0;
    int owed = 0;
  };
  one& of(int lane) { return lanes_[static_cast<std::size_t>(lane)]; }
  const one& of(int lane) const { return lanes_[static_cast<std::size_t>(lane)]; }
  void record(int lane, bool notify) {
    one& l = of(lane);
    l.recorded = device_->record(lane, notify);
    l.owed = 0;
  }

  devices::accelerator* device_ = nullptr;
  std::vector<one> lanes_;
};

}  // namespace troupe::detail
