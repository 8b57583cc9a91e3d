// What this file is for: the node that is in an actor's place: its session, what it offers, its name among nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "actors/protocol/node.hpp"
#include "actors/wire/node_names.hpp"
#include "net/codec.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

/// Nodes come and go in one place, one at a time. A node is in session from `join` to `leave`, and is there for others
/// from `show` on: nothing may be given to it before the actor is ready for that.
///
/// A part of a node's actor, under the actor's lock but for what says otherwise. It has a lock of its own for the id of
/// the node, which the actors of other nodes ask for while they hold theirs: nothing else is locked inside.
class occupant {
 public:
  /// Takes the session of a node that has joined. `threads`: those that it offers; one at least is counted.
  void join(std::shared_ptr<net::session> s, int threads, std::uint64_t memory_bytes) {
    session_ = std::move(s);
    slots_ = std::max(1, threads);
    memory_bytes_ = memory_bytes;
    times_.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard hold(id_lock_);
    id_ = name_of(session_->peer().id);
  }
  /// Ends the session with the node, which has gone. What it has offered stays known until another one joins.
  void leave() {
    there_.store(false, std::memory_order_release);
    session_.reset();
    const std::lock_guard hold(id_lock_);
    id_.reset();
  }

  bool has_session() const { return session_ != nullptr; }
  /// The session, which is null if there is none.
  const std::shared_ptr<net::session>& session() const { return session_; }
  /// Sends a frame; there must be a session. If that has ended, the actor is told to lose the node.
  void send(const net::writer& frame) const { session_->send(frame.view()); }
  /// Bodies that the node runs at once.
  int slots() const { return slots_; }
  std::uint64_t memory_bytes() const { return memory_bytes_; }
  // ---- any thread ---------------------------------------------------------------------------------------------------
  /// Shows the node that has joined to others.
  void show() { there_.store(true, std::memory_order_release); }
  bool is_there() const { return there_.load(std::memory_order_acquire); }
  /// Returns how often a node has joined in this place.
  std::uint64_t times() const { return times_.load(std::memory_order_relaxed); }
  /// Returns the id of the node that is in session; nothing if none is.
  std::optional<node_id> id() const {
    const std::lock_guard hold(id_lock_);
    return id_;
  }

 private:
  std::shared_ptr<net::session> session_;
  int slots_ = 0;
  std::atomic<bool> there_{false};
  std::uint64_t memory_bytes_ = 0;
  std::atomic<std::uint64_t> times_{0};
  mutable std::mutex id_lock_;
  std::optional<node_id> id_;
};

}  // namespace troupe::detail
