// What this file is for: the bell that wakes an actor's thread.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "actors/protocol/late_wakes.hpp"

namespace troupe::detail {

/// Wakes the one thread that sleeps in front of it. A ring that finds no sleeper is kept, and ends the next sleep at
/// once. Any thread rings, and the sleeper wakes once that thread has left its turn; one thread sleeps.
class bell {
 public:
  using held = std::unique_lock<std::mutex>;

  void ring() {
    mark_rung(hold());
    late_wakes::wake(changed_);
  }
  /// Rings for a caller that waits for what the sleeper then does, also in a turn: the sleeper wakes at once.
  void ring_now() {
    mark_rung(hold());
    changed_.notify_one();
  }
  /// True while the thread sleeps, or is about to. Sequentially consistent, as a mailbox's count.
  bool has_sleeper() const { return asleep_.load(std::memory_order_seq_cst); }

  // ---- for rings and sleeps that depend on more than the bell: with the lock ----------------------------------------
  [[nodiscard]] held hold() { return held(lock_); }
  void mark_rung(const held&) { rung_ = true; }
  bool is_rung(const held&) const { return rung_; }
  /// Wakes the sleeper after `mark_rung`, once the lock has been released.
  void wake() { late_wakes::wake(changed_); }

  // ---- the thread that sleeps ---------------------------------------------------------------------------------------
  /// Sleeps until it rings, unless `has_work` is true after the sleep has been announced: what is posted later rings.
  template <class HasWork>
  void sleep_unless(HasWork&& has_work) {
    held lock(lock_);
    announce(lock);
    if (!has_work()) wait(lock);
    answer(lock);
    get_up();
  }
  void announce(const held&) { asleep_.store(true, std::memory_order_seq_cst); }
  void wait(held& lock) {
    changed_.wait(lock, [&] { return rung_; });
  }
  /// Waits at most that long; true if it rang.
  bool wait_for(held& lock, std::chrono::nanoseconds most) {
    return changed_.wait_for(lock, most, [&] { return rung_; });
  }
  /// Forgets the rings that this sleep was to end with.
  void answer(const held&) { rung_ = false; }
  void get_up() { asleep_.store(false, std::memory_order_seq_cst); }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  bool rung_ = false;
  std::atomic<bool> asleep_{false};
};

}  // namespace troupe::detail
