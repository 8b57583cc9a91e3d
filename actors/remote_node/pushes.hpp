// What this file is for: bytes that go to a node with the task that reads them, before the node has asked for them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "actors/wire/task_messages.hpp"
#include "net/codec.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

/// Decides which boxes are pushed, numbers the pushes, and keeps those that have not begun. What is under way at once
/// is bounded (wire::pushed_bytes_max).
///
/// A part of a node's actor, under the actor's lock; the actor begins the transfers that take() returns without it,
/// because a session that has ended answers at once.
class pushes {
 public:
  /// A push: a transfer that has not begun.
  struct push {
    std::shared_ptr<net::session> to;
    std::uint64_t job = 0, bytes = 0;
    std::vector<std::byte> head;
    net::const_pieces body;
  };

  /// Sets whether the node takes pushes: only where its memory is not counted.
  void allow(bool is) { allowed_ = is; }
  bool is_allowed() const { return allowed_; }
  /// True if a box of that size may be pushed now.
  bool fits(std::uint64_t bytes) const {
    return allowed_ && bytes <= box_max && under_way_ + weight_of(bytes) <= wire::pushed_bytes_max;
  }
  /// Adds a push of a box that fits; returns its number. The bytes must stay until ended().
  std::uint64_t add(std::shared_ptr<net::session> to, std::uint64_t job, std::uint64_t bytes, const net::pieces& body) {
    net::writer head;
    head.fixed(wire::kind::bytes_pushed);
    head.varint(last_ + 1);
    waiting_.push_back({std::move(to), job, bytes, head.take(), {body.begin(), body.end()}});
    under_way_ += weight_of(bytes);
    return ++last_;
  }
  /// Drops those of a job that have not begun: it does not go there.
  void drop(std::uint64_t job) {
    std::erase_if(waiting_, [&](const push& p) {
      if (p.job != job) return false;
      ended(p.bytes);
      return true;
    });
  }
  /// Drops all that have not begun: the session has ended.
  void drop_all() {
    for (const push& p : std::exchange(waiting_, {})) ended(p.bytes);
  }
  /// Takes those that are to begin now: their tasks have been sent.
  std::vector<push> take() { return std::exchange(waiting_, {}); }
  /// Notes that the memory of a push is not read any more.
  void ended(std::uint64_t bytes) { under_way_ -= weight_of(bytes); }

 private:
  // The largest box that is pushed. To be asked takes some 50 us, which is a tenth of what this much takes on a fast
  // link; for larger boxes the node there knows better when it wants them.
  static constexpr std::uint64_t box_max = 1u << 20;
  // A small box counts as that much.
  static constexpr std::uint64_t box_min = 4u << 10;
  static std::uint64_t weight_of(std::uint64_t bytes) { return std::max(bytes, box_min); }

  std::vector<push> waiting_;  // of tasks that have been sent, or are about to be
  std::uint64_t last_ = 0, under_way_ = 0;
  bool allowed_ = false;
};

}  // namespace troupe::detail
