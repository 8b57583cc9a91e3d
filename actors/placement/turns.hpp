// What this file is for: the turn, which is the right to decide, and whether a thread is likely to take it soon.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "actors/placement/side_turns.hpp"
#include "actors/protocol/late_wakes.hpp"
#include "actors/protocol/turn.hpp"

namespace troupe::detail {

/// The turn, the side turns that it excludes, and the count of threads that will come for it without being woken. A
/// part of placement that owns no tasks: any thread calls any function, but those that say so only with the turn.
class turns {
 public:
  /// `stale_ticks`: a turn is overdue when none has been taken for so long.
  explicit turns(std::uint64_t stale_ticks) : stale_ticks_(stale_ticks) {}

  bool try_take() {
    if (!turn_.try_take()) return false;
    outer_ = std::exchange(held_here_, this);
    late_.begin();
    std::atomic_thread_fence(std::memory_order_seq_cst);  // see is_over
    aside_.close();
    return true;
  }
  void take() {
    turn_.take();
    outer_ = std::exchange(held_here_, this);
    late_.begin();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    aside_.close();
  }
  /// Leaves the turn, and wakes the threads that there was reason to wake in it.
  void leave() {
    aside_.open();
    left_.store(left_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    held_here_ = outer_;
    late_wakes::due due = late_.end();
    turn_.leave();
    due.wake();
  }

  /// True if the calling thread holds this turn.
  bool are_held_here() const {
    const turns* t = held_here_;
    while (t && t != this) t = t->outer_;
    return t != nullptr;
  }

  /// The turn and the side turns that are held at the same time.
  struct held {
    std::uint64_t left = 0;
    side_turns::held aside;
  };
  /// Notes what is held now, for `is_over`.
  void note_held(held& h) const {
    h.left = left_.load(std::memory_order_acquire);
    aside_.note_held(h.aside);
  }
  /// True if none of those is held any more that `note_held` noted. Later ones see all that its caller changed before,
  /// with a sequentially consistent fence in between.
  bool is_over(const held& h) const {
    return (turn_.is_free() || left_.load(std::memory_order_acquire) != h.left) && aside_.are_over(h.aside);
  }
  /// The same, but if side turns are held those who have them are asked to tell when they leave.
  bool is_over_or_ask(const held& h) {
    return (turn_.is_free() || left_.load(std::memory_order_acquire) != h.left) && aside_.ask(h.aside);
  }

  side_turns& aside() { return aside_; }
  const side_turns& aside() const { return aside_; }

  /// Notes that this thread decides from `now` on. With the turn.
  void begin(std::uint64_t now) {
    was_stale_ = now - last_.load(std::memory_order_relaxed) > stale_ticks_;
    last_.store(now, std::memory_order_relaxed);
    last_taker_.store(this_thread_mark(), std::memory_order_relaxed);
    ++count_;
  }
  /// True if the turn that has begun is one of those that are timed: to read the clock costs a tenth of the shortest
  /// turns. `is_long`: it has handled much, so that this costs little; all of these are timed. With the turn.
  bool is_timed(bool is_long) const { return is_long || count_ % timed_every == 0; }
  /// Notes the end of a timed turn. With the turn.
  void end_timed(std::uint64_t now, bool is_long) {
    (is_long ? long_ : timed_) += now - last_.load(std::memory_order_relaxed);
  }
  /// Returns the ticks for which turns that have begun were held; those that are not timed are estimated from short
  /// ones that are. With the turn.
  std::uint64_t held_ticks() const { return long_ + timed_ * timed_every; }
  /// True if this turn was overdue when it began. With the turn.
  bool was_stale() const { return was_stale_; }
  /// Turns begun so far. With the turn.
  std::uint64_t count() const { return count_; }

  /// True if no thread holds the turn, and none has taken it for a while.
  bool is_stale(std::uint64_t now) const {
    return now - last_.load(std::memory_order_relaxed) > stale_ticks_ && !turn_.is_taken();
  }
  std::uint64_t stale_ticks() const { return stale_ticks_; }
  /// True if this thread was the last one to begin a turn.
  bool this_thread_was_last() const { return last_taker_.load(std::memory_order_relaxed) == this_thread_mark(); }

  /// Counts the threads of executors that are running or deciding.
  void became_active() { active_.fetch_add(1, std::memory_order_seq_cst); }
  void became_idle() { active_.fetch_sub(1, std::memory_order_seq_cst); }
  int active() const { return active_.load(std::memory_order_seq_cst); }

 private:
  static constexpr std::uint64_t timed_every = 17;  // prime: turns of two kinds may alternate

  static const void* this_thread_mark() {
    thread_local const char mark = 0;
    return &mark;
  }

  static inline thread_local const turns* held_here_ = nullptr;  // the last that the thread has taken

  side_turns aside_;
  alignas(64) turn turn_;
  late_wakes late_;
  const turns* outer_ = nullptr;        // that its holder holds as well, of another runtime
  std::atomic<std::uint64_t> left_{0};  // turns
  std::atomic<std::uint64_t> last_{0};  // ticks
  std::atomic<const void*> last_taker_{nullptr};
  const std::uint64_t stale_ticks_;
  std::uint64_t count_ = 0, timed_ = 0, long_ = 0;  // turns; ticks of short ones, of long ones
  bool was_stale_ = false;
  alignas(64) std::atomic<int> active_{0};
};

}  // namespace troupe::detail
