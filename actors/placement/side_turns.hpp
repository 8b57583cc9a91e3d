// What this file is for: side turns: threads that submit order tasks on arrays of their own while nobody has the turn.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A side is what one thread that submits has for itself, or a few where there are more threads than sides. A side turn
// is the right to order tasks on arrays that belong to that side; each side has one of its own. The turn excludes all
// of them. An array comes to a side with the first side turn that wants it, and leaves it as soon as a task that uses
// it is posted for the turn: what the same threads submit after that has to come after it, so it is posted, too.
//
// The owner of an array is its owner for one generation. A new one, in which all arrays are free again, begins in a
// turn; there are no side turns until mail has been fetched and handled once since: then all that was posted in the
// generation before is ordered. Mail is posted with a lock of the mailbox held, and so is the mark at its arrays:
// whoever has waited for these locks after it began a generation finds all mail that was marked with an older one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include <troupe/detail/spin_lock.hpp>
#include <troupe/detail/task.hpp>

#include "actors/logic/data/array_core.hpp"

namespace troupe::detail {

/// Side turns and generations. A part of placement that owns no tasks. Any thread calls any function, but those that
/// say so only with the turn.
class side_turns {
 public:
  static constexpr std::size_t sides = 8;

  /// Returns the side of the calling thread.
  static std::size_t of_thread() {
    static std::atomic<std::size_t> threads{0};
    thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % sides;
    return mine;
  }

  /// True if threads are to try side turns.
  bool are_wanted() const { return generation(state_.load(std::memory_order_relaxed)) != 0; }

  /// Takes the side turn of a side; waits for it, and for the end of a turn, but not for long, and not at all if
  /// `at_once`, or if the side has waited in vain since it had a side turn. False: the caller has none, and posts its
  /// task. `told`: see leave.
  bool try_take(std::size_t side, bool at_once, bool& told) {
    if (!are_wanted()) return false;
    std::atomic<bool>& gave_up = all_[side].gave_up;
    const bool waits = !at_once && !gave_up.load(std::memory_order_relaxed);
    if (try_for(side, waits ? tries_max : 1, told)) {
      if (!waits && gave_up.load(std::memory_order_relaxed)) gave_up.store(false, std::memory_order_relaxed);
      return true;
    }
    if (waits) gave_up.store(true, std::memory_order_relaxed);
    return false;
  }
  /// Leaves the side turn. True: another thread has asked to be told, see `ask`.
  [[nodiscard]] bool leave(std::size_t side) {
    one& s = all_[side];
    s.turns.store(s.turns.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    return s.asked.load(std::memory_order_seq_cst) && s.asked.exchange(false, std::memory_order_seq_cst);
  }
  /// True if the array belongs to the side, or does from now on. With the side turn.
  bool has(std::size_t side, array_core& a) const {
    const std::uint64_t mine = mark(state_.load(std::memory_order_relaxed), side);
    std::uint64_t owner = a.side.load(std::memory_order_relaxed);
    if (owner == mine) return true;
    return owner >> owner_bits != mine >> owner_bits &&
           a.side.compare_exchange_strong(owner, mine, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  /// True if an array of the task is for the turn, in this generation.
  bool is_for_turn(const task_record& t) const {
    const std::uint64_t theirs = mark(state_.load(std::memory_order_relaxed), nobody);
    for (int i = 0; i < t.access_count; ++i)
      if (const array_core* const a = t.accesses[i].array; a && a->side.load(std::memory_order_relaxed) == theirs)
        return true;
    return false;
  }
  /// Takes the arrays of a task from their sides, which is posted for the turn. With the lock with which it is posted.
  void note_posted(const task_record& t) const {
    const std::uint64_t now = state_.load(std::memory_order_relaxed);
    if (generation(now) == 0) [[likely]]
      return;
    for (int i = 0; i < t.access_count; ++i)
      if (array_core* const a = t.accesses[i].array) a->side.store(mark(now, nobody), std::memory_order_release);
  }

  // ---- whether side turns that were held are over -------------------------------------------------------------------
  /// Side turns that were held at the same time.
  struct held {
    std::uint32_t some = 0;  // a bit for each side
    std::array<std::uint64_t, sides> turns;
  };
  /// Notes the side turns that are held. Those that are taken later see all that the caller changed before a
  /// sequentially consistent fence that comes before this.
  void note_held(held& h) const {
    h.some = 0;
    if (!were_wanted_.load(std::memory_order_relaxed)) return;
    for (std::size_t i = 0; i < sides; ++i)
      if (const std::uint64_t n = all_[i].turns.load(std::memory_order_acquire); is_held(n)) {
        h.turns[i] = n;
        h.some |= 1U << i;
      }
  }
  /// True if none of them is held any more.
  bool are_over(const held& h) const {
    for (std::size_t i = 0; h.some >> i != 0; ++i)
      if ((h.some >> i & 1U) != 0 && all_[i].turns.load(std::memory_order_acquire) == h.turns[i]) return false;
    return true;
  }
  /// Asks those who hold one of them to tell when they have left. True if all are over by now.
  bool ask(const held& h) {
    bool over = true;
    for (std::size_t i = 0; h.some >> i != 0; ++i) {
      if ((h.some >> i & 1U) == 0 || all_[i].turns.load(std::memory_order_acquire) != h.turns[i]) continue;
      all_[i].asked.store(true, std::memory_order_seq_cst);
      over = over && all_[i].turns.load(std::memory_order_seq_cst) != h.turns[i];
    }
    return over;
  }

  // ---- with the turn ------------------------------------------------------------------------------------------------
  /// Ends side turns, and waits for those that are held: the turn was just taken.
  void close() {
    const std::uint64_t now = state_.load(std::memory_order_relaxed);
    if (!is_open(now)) return;
    state_.store(now & ~open_bit, std::memory_order_seq_cst);
    for (one& s : all_)
      for (int tries = 0; is_held(s.turns.load(std::memory_order_seq_cst)); ++tries)
        if (tries < pauses)
          spin_lock::pause();
        else
          std::this_thread::yield();
  }
  /// Allows side turns if they are wanted and the generation has begun: the turn is about to be left.
  void open() {
    if (!is_settled_) [[likely]]
      return;
    state_.store(state_.load(std::memory_order_relaxed) | open_bit, std::memory_order_seq_cst);
  }
  /// Begins a generation. Then wait for all locks with which mail is posted.
  void renew() {
    is_settled_ = false;
    were_wanted_.store(true, std::memory_order_seq_cst);
    state_.store(++generations_ << 1, std::memory_order_seq_cst);
  }
  /// Notes that all has been handled that was posted before the generation began.
  void note_handled() { is_settled_ = are_wanted(); }
  bool is_settled() const { return is_settled_; }
  /// Ends them until the next `renew`.
  void stop() {
    is_settled_ = false;
    state_.store(0, std::memory_order_seq_cst);
  }

 private:
  // The state is the generation, 0 for none, and whether side turns may be taken. An array's side is the generation in
  // which it came to its owner, and that: a side, or nobody, so that it is for the turn.
  static constexpr std::uint64_t open_bit = 1;
  static constexpr int owner_bits = 4;
  static constexpr std::size_t nobody = 15;
  static constexpr int pauses = 200, tries_max = 220;

  static constexpr std::uint64_t generation(std::uint64_t state) { return state >> 1; }
  static constexpr bool is_open(std::uint64_t state) { return (state & open_bit) != 0; }
  static constexpr bool is_held(std::uint64_t turns) { return turns % 2 != 0; }
  static constexpr std::uint64_t mark(std::uint64_t state, std::size_t owner) {
    return generation(state) << owner_bits | owner;
  }
  bool try_for(std::size_t side, int tries_in_all, bool& told) {
    for (int tries = 0; tries < tries_in_all; ++tries) {
      const std::uint64_t now = state_.load(std::memory_order_relaxed);
      if (generation(now) == 0) return false;
      if (is_open(now) && begin(side)) {
        // The holder of the turn sees this side turn, or its closing is seen here; and see note_held.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (is_open(state_.load(std::memory_order_acquire))) return true;
        told = leave(side) || told;
      }
      if (tries < pauses)
        spin_lock::pause();
      else
        std::this_thread::yield();
    }
    return false;
  }
  bool begin(std::size_t side) {
    std::uint64_t n = all_[side].turns.load(std::memory_order_relaxed);
    return !is_held(n) && all_[side].turns.compare_exchange_strong(n, n + 1, std::memory_order_acquire);
  }

  struct alignas(64) one {
    std::atomic<std::uint64_t> turns{0};  // taken and left: odd while one is held
    std::atomic<bool> asked{false};       // somebody wants to be told when it is left
    std::atomic<bool> gave_up{false};     // a thread has waited in vain, and none has had it since
  };
  std::array<one, sides> all_;
  alignas(64) std::atomic<std::uint64_t> state_{0};
  std::atomic<bool> were_wanted_{false};  // ever
  std::uint64_t generations_ = 0;
  bool is_settled_ = false;
};

}  // namespace troupe::detail
