// What this file is for: small copies from and to pageable host memory on one lane, through pinned memory of its own.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   copy in    the caller copies host -> pinned, then enqueues pinned -> device
//   copy out   the caller enqueues device -> pinned; whoever sees that its ticket is reached copies pinned -> host
//
// Nobody is called back and no other stream takes part: that costs more than such a copy does. A large copy would hold
// its caller, and is staged beside it instead: staging.gpu.h. Included after a vendor's header; see backend.gpu.cpp.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "devices/accelerator.hpp"
#include "devices/gpu/copies.gpu.h"
#include "devices/gpu/staged_copy.hpp"

namespace troupe::devices::gpu::GPU_NS {

/// One direction of one lane: a ring of pinned memory, and the copies that it holds, in the order of the lane. Codes go
/// to `check(code, call)`, which throws.
class small_copies {
 public:
  static constexpr std::size_t ring_bytes = std::size_t{1} << 20;
  /// Larger copies are not taken: the caller copies in meanwhile, and copies out beside all else that it looks after.
  static constexpr index_t in_bytes_max = 256 << 10, out_bytes_max = 64 << 10;

  explicit small_copies(bool in) : in_(in) {}

  bool takes(const staged_copy& plan) const { return plan.bytes() <= (in_ ? in_bytes_max : out_bytes_max); }
  /// False: there is no room now, and nothing is enqueued. `end`: the ticket that the lane records next. `pinned(bytes)`
  /// gives memory or null.
  template <class Pinned, class Check>
  bool copy(GPU(Stream_t) lane, const staged_copy& plan, std::byte* host, std::byte* device, ticket end, Pinned pinned,
            Check check) {
    if (refused_) return false;
    if (!memory_) memory_ = pinned(ring_bytes);
    if (!memory_) {
      refused_ = true;  // nor is it asked for again with every copy
      return false;
    }
    const auto bytes = static_cast<std::size_t>(plan.bytes());
    const auto at = room_for(bytes);
    if (!at) return false;
    const staged_copy::piece all{0, plan.bytes()};
    held_.push_back({*at, bytes, end, host, plan});
    if (in_) plan.copy_host(all, host, memory_ + *at, true);
    try {
      enqueue_staged(lane, plan, all, device, memory_ + *at, in_, check);
    } catch (...) {  // some of it may be under way: the room stays taken
      held_.back().host = nullptr;
      throw;
    }
    return true;
  }
  /// The lane has reached the ticket: copies out arrive, and their room is free.
  void reach(ticket t) {
    for (; !held_.empty() && held_.front().end <= t; held_.pop_front()) {
      const one& c = held_.front();
      if (!in_ && c.host) c.plan.copy_host({0, c.plan.bytes()}, c.host, memory_ + c.at, false);
    }
  }
  bool any() const { return !held_.empty(); }
  /// True if a copy that has not arrived touches [begin, end) of the host's memory.
  bool touches(const std::byte* begin, const std::byte* end) const {
    for (const one& c : held_)
      if (c.host && c.host < end && begin < c.host + c.plan.host_reach()) return true;
    return false;
  }

 private:
  struct one {
    std::size_t at, bytes;
    ticket end;
    std::byte* host;  // null: the copy was not enqueued as a whole
    staged_copy plan;
  };

  // Behind the last copy, or from the start again; never as much as would make a full ring look empty.
  std::optional<std::size_t> room_for(std::size_t bytes) const {
    if (held_.empty()) return bytes <= ring_bytes ? std::optional<std::size_t>(0) : std::nullopt;
    const std::size_t first = held_.front().at, next = held_.back().at + held_.back().bytes;
    if (held_.back().at >= first) {
      if (bytes <= ring_bytes - next) return next;
      return bytes < first ? std::optional<std::size_t>(0) : std::nullopt;
    }
    return bytes < first - next ? std::optional(next) : std::nullopt;
  }

  const bool in_;
  std::byte* memory_ = nullptr;  // the device's
  bool refused_ = false;
  std::deque<one> held_;
};

}  // namespace troupe::devices::gpu::GPU_NS
