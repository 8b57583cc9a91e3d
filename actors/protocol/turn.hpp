// What this file is for: the turn, which is the right to change an actor's state.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <thread>

#include <troupe/detail/spin_lock.hpp>

namespace troupe::detail {

/// The turn of one actor. One thread at a time has it and does what waits in the actor's mailbox; it is kept for
/// microseconds. Any thread calls any function; `leave` only the thread that has the turn.
class turn {
 public:
  /// `taken`: the turn belongs to the actor's own thread at first.
  explicit turn(bool taken = false) : taken_(taken) {}

  /// Takes the turn if it is free; never waits.
  bool try_take() { return !is_taken() && !taken_.exchange(true, std::memory_order_seq_cst); }
  /// Waits for the turn.
  void take() {
    for (int tries = 0; !try_take(); ++tries)
      if (tries < 64)
        spin_lock::pause();
      else
        std::this_thread::yield();
  }
  /// Sequentially consistent with a mailbox's count: a thread that has posted and finds the turn taken may rely on the
  /// holder, which looks at the count after it has left.
  void leave() { taken_.store(false, std::memory_order_seq_cst); }
  bool is_taken() const { return taken_.load(std::memory_order_relaxed); }
  /// True if nobody has the turn; what the last holder has done is known to the caller then.
  bool is_free() const { return !taken_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> taken_;
};

}  // namespace troupe::detail
