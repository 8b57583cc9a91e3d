// What this file is for: side turns: threads that submit order tasks on arrays of their own while nobody has the turn.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A side is what one thread that submits has for itself, or a few where there are more threads than sides. A side turn
// is the right to order tasks on arrays that belong to that side; each side has one of its own. The turn excludes all
// of them. An array comes to a side with the first side turn that wants it, and leaves it as soon as a task that uses
// it is posted for the turn: what the same threads submit after that has to come after it, and so waits for it to be
// ordered, or is posted, too.
//
// When such a task has been ordered, its array is free again: the next side that wants it gets it. Nothing counts these
// tasks. A task is posted with a lock of the mailbox held, with which its arrays are marked with the number of a fetch
// that will have taken it; arrays are free once all mail up to that fetch has been handled. What was posted before side
// turns were wanted is not marked: they begin only once all of that has been handled.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include <troupe/detail/spin_lock.hpp>
#include <troupe/detail/task.hpp>

#include "actors/logic/data/array_core.hpp"

namespace troupe::detail {

/// Side turns, and to whom arrays belong. A part of placement that owns no tasks. Any thread calls any function, but
/// those that say so only with the turn.
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
  bool are_wanted() const { return state_.load(std::memory_order_relaxed) != 0; }

  /// Takes the side turn of a side, if there is no turn and no other thread has it. `told`: see leave.
  bool try_take(std::size_t side, bool& told) {
    if (!is_open(state_.load(std::memory_order_relaxed)) || !begin(side)) return false;
    // The holder of the turn sees this side turn, or its closing is seen here; and see note_held.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (is_open(state_.load(std::memory_order_acquire))) return true;
    told = leave(side) || told;
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
    std::uint64_t owner = a.side.load(std::memory_order_relaxed);
    if (owner == mark_of(side)) return true;
    return is_nobodys(owner) && !is_for_turn(owner) &&
           a.side.compare_exchange_strong(owner, mark_of(side), std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  /// True if a task that uses an array of this one was posted for the turn, and has not been handled.
  bool is_for_turn(const task_record& t) const {
    for (int i = 0; i < t.access_count; ++i)
      if (const array_core* const a = t.accesses[i].array; a && is_for_turn(a->side.load(std::memory_order_relaxed)))
        return true;
    return false;
  }
  /// Takes the arrays of a task from their sides, which is posted for the turn, if threads are to try side turns. With
  /// the lock with which it is posted; `fetch`: the task has been taken when all fetches up to that one are over.
  void note_posted(const task_record& t, std::uint64_t fetch) const {
    // The smaller of the numbers of two threads that post at the same time may be the one that stays. It is enough: the
    // fetch with that number waits for that thread's lock, and then looks once more which lanes have mail.
    for (int i = 0; i < t.access_count; ++i)
      if (array_core* const a = t.accesses[i].array) a->side.store(mark_of_fetch(fetch), std::memory_order_release);
  }

  // ---- how long a thread waits for a side turn ----------------------------------------------------------------------
  /// True if a thread of the side that finds side turns closed, or an array of its task for the turn, is to wait for
  /// that to change; else it posts the task. What is posted needs a turn, which ends all side turns for a while: where
  /// all threads posted, none would ever have one again. But where turns are long, or many tasks need one, each wait
  /// would be in vain: after each such wait twice as many tasks are posted without one.
  bool is_to_wait(std::size_t side) {
    one& s = all_[side];
    const std::uint32_t n = s.unwaited.load(std::memory_order_relaxed);
    if (n == 0) return true;
    s.unwaited.store(n - 1, std::memory_order_relaxed);  // threads that share a side may count one task for two
    return false;
  }
  /// Notes how a wait has ended.
  void note_waited(std::size_t side, bool in_vain) {
    one& s = all_[side];
    const std::uint32_t last = s.unwaited_next.load(std::memory_order_relaxed);
    if (in_vain) {
      s.unwaited.store(last, std::memory_order_relaxed);
      s.unwaited_next.store(std::min(2 * last, unwaited_max), std::memory_order_relaxed);
    } else if (last > 1) {
      s.unwaited_next.store(last / 2, std::memory_order_relaxed);
    }
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
  /// Allows side turns if they are wanted and what was posted before they were has been handled: the turn is about to
  /// be left.
  void open() {
    if (!is_settled_) [[likely]]
      return;
    state_.store(state_.load(std::memory_order_relaxed) | open_bit, std::memory_order_seq_cst);
  }
  /// Has threads try side turns; then wait for all locks with which mail is posted. They are taken once the mail of
  /// `fetch` has been handled, the fetch that takes all that has been posted by then.
  void want(std::uint64_t fetch) {
    is_settled_ = false;
    settles_at_ = fetch;
    were_wanted_.store(true, std::memory_order_seq_cst);
    state_.store(wanted_bit, std::memory_order_seq_cst);
  }
  /// Notes that all mail up to that fetch has been handled.
  void note_handled(std::uint64_t fetch) {
    if (handled_.load(std::memory_order_relaxed) != fetch) handled_.store(fetch, std::memory_order_release);
    is_settled_ = are_wanted() && fetch >= settles_at_;
  }
  /// Ends them until they are wanted again.
  void stop() {
    is_settled_ = false;
    state_.store(0, std::memory_order_seq_cst);
  }

 private:
  static constexpr std::uint64_t wanted_bit = 2, open_bit = 1;
  // An array's mark says to which side it belongs, or, in the bits above, which fetch takes the last task that was
  // posted for the turn; zero: no such task ever was.
  static constexpr int owner_bits = 4;
  static constexpr std::uint32_t unwaited_max = 4'096;
  static constexpr int pauses = 200;  // before a turn that waits gives its core to others

  static constexpr bool is_open(std::uint64_t state) { return (state & open_bit) != 0; }
  static constexpr bool is_held(std::uint64_t turns) { return turns % 2 != 0; }
  static constexpr std::uint64_t mark_of(std::size_t side) { return side + 1; }
  static constexpr std::uint64_t mark_of_fetch(std::uint64_t number) { return number << owner_bits; }
  static constexpr bool is_nobodys(std::uint64_t mark) { return mark % (1U << owner_bits) == 0; }
  bool is_for_turn(std::uint64_t mark) const {
    return is_nobodys(mark) && mark >> owner_bits > handled_.load(std::memory_order_relaxed);
  }
  bool begin(std::size_t side) {
    std::uint64_t n = all_[side].turns.load(std::memory_order_relaxed);
    return !is_held(n) && all_[side].turns.compare_exchange_strong(n, n + 1, std::memory_order_acquire);
  }

  struct alignas(64) one {
    std::atomic<std::uint64_t> turns{0};                       // taken and left: odd while one is held
    std::atomic<bool> asked{false};                            // somebody wants to be told when it is left
    std::atomic<std::uint32_t> unwaited{0}, unwaited_next{1};  // tasks to post without a wait, now and next time
  };
  std::array<one, sides> all_;
  alignas(64) std::atomic<std::uint64_t> state_{0};
  std::atomic<std::uint64_t> handled_{0};  // the last fetch all mail of which has been handled
  std::atomic<bool> were_wanted_{false};   // ever
  std::uint64_t settles_at_ = 0;           // the fetch that must have been handled
  bool is_settled_ = false;
};

}  // namespace troupe::detail
