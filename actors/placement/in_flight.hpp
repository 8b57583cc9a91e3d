// What this file is for: the count of tasks in flight, its bound, and threads that wait for it to fall.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace troupe::detail {

/// Tasks that have been submitted and have not finished. Any thread may call any function, but those that say so only
/// with placement's turn. Waits hold no turn; the thread that waits has seen to it that all mail is handled.
class in_flight {
 public:
  /// `max`: the bound of options::tasks_in_flight_max. Threads held back at it go on when a quarter of it has drained.
  explicit in_flight(std::size_t max) : max_(max), drained_((max - 1) - (max - 1) / 4) {}

  /// Submissions between two looks at the bound and at stale mail; see options::tasks_in_flight_max.
  static constexpr std::uint64_t look_every = 16;

  /// Sides that count for themselves what they submit; see side_turns.
  static constexpr std::size_t sides = 8;
  /// Numbers of threads that count what has retired without a turn.
  static constexpr std::size_t counters = 16;

  /// The number of tasks submitted, but by sides, for the inbox to increment.
  std::atomic<std::uint64_t>& submissions() { return submitted_; }
  /// Counts a task that a side submits, before any other thread can have it. Not before `count_sides`, once.
  void note_submitted_aside(std::size_t side) { aside_[side].n.fetch_add(1, std::memory_order_seq_cst); }
  void count_sides() { has_sides_.store(true, std::memory_order_seq_cst); }
  std::uint64_t submitted() const {
    std::uint64_t n = submitted_.load(std::memory_order_seq_cst);
    if (has_sides_.load(std::memory_order_relaxed))
      for (const counter& c : aside_) n += c.n.load(std::memory_order_seq_cst);
    return n;
  }
  /// The number of tasks that have finished, in turns as of the last `publish`; a thread that reads it sees what those
  /// tasks wrote.
  std::uint64_t finished() const { return finished_in(std::memory_order_acquire); }
  /// Submitted minus finished, which is read first, so that it is never more; and if they are the same, there was none
  /// in flight when it was read.
  std::uint64_t count() const {
    const std::uint64_t finished = finished_in(std::memory_order_seq_cst);
    return submitted() - finished;
  }
  bool none() const { return count() == 0; }

  /// True if the bound is to be looked at now: some tasks more do not matter where it is large.
  bool may_be_at_bound() const {
    return max_ < 64 * look_every || submitted_.load(std::memory_order_relaxed) % look_every == 0;
  }
  /// The same for what a thread of that side is about to submit, itself or by mail.
  bool may_be_at_bound(std::size_t side) {
    std::atomic<std::uint64_t>& calls = aside_[side].calls;
    const std::uint64_t n = calls.load(std::memory_order_relaxed);
    calls.store(n + 1, std::memory_order_relaxed);  // threads that share a side may count one call for two
    return max_ < 64 * look_every || n % look_every == 0;
  }
  bool is_at_bound() const { return count() >= max_; }

  /// Sets the test whether the tasks in flight wait for the calling thread, which is asked now and then while that is
  /// held back. Before the first task.
  void use_exemption(std::function<bool()> is_exempt) { is_exempt_ = std::move(is_exempt); }
  /// Holds the calling thread back until a quarter of the bound has drained, or the tasks in flight wait for it. Calls
  /// `meanwhile` now and then: ends that have not been reported may be all that is missing.
  void wait_until_drained(const std::function<void()>& meanwhile);
  /// Waits until there are fewer tasks than the bound, or no more are taken; false if the deadline passes before.
  bool wait_for_room(std::chrono::steady_clock::time_point deadline, const std::function<void()>& meanwhile);
  /// Waits for `quiet`, which becomes true when tasks finish; looks at it at each wake-up. Returns what it is then.
  bool wait_until(const std::function<bool()>& quiet, std::chrono::steady_clock::time_point deadline);

  /// Counts a task that has retired. With the turn.
  void note_retired() { ++retired_; }
  /// Counts a host access that was granted: it counts as retired while its view is open. With the turn.
  void note_granted() {
    ++retired_;
    ++open_views_;
  }
  /// Notes that a host access that was granted has retired. With the turn.
  void note_closed() { --open_views_; }
  /// True if all tasks submitted have retired, and no view is open. With the turn.
  bool all_retired() const {
    const std::uint64_t all = retired_ + retired_outside(std::memory_order_seq_cst);
    return open_views_ == 0 && all == submitted();
  }
  /// Shows all threads how many have retired in turns. With the turn.
  void publish() {
    // A reader of it also sees what the tasks wrote. Sequentially consistent with the other count: of two threads that
    // end the last tasks at the same time, one sees that none is left.
    if (finished_.load(std::memory_order_relaxed) != retired_) finished_.store(retired_, std::memory_order_seq_cst);
  }
  /// Counts tasks that have retired without a turn, and wakes threads that wait, if there is reason to. Threads with
  /// different numbers, below `counters`, count apart.
  void note_retired_outside(std::size_t n, std::size_t number) {
    if (number >= counting_.load(std::memory_order_seq_cst)) raise_counting(number + 1);
    outside_[number].n.fetch_add(n, std::memory_order_seq_cst);
    wake_waiters();
  }
  /// Wakes threads that wait, if there is reason to. Called after the turn was left, which orders it after the store to
  /// `finished_`.
  void wake_waiters() {
    const bool quiet_wanted = quiet_waiters_.load(std::memory_order_seq_cst) != 0;
    const bool room_wanted = bound_waiters_.load(std::memory_order_seq_cst) != 0;
    if (quiet_wanted || room_wanted) wake_some(quiet_wanted, room_wanted);
  }

  /// Takes no more tasks from now on.
  void close() { closed_.store(true); }
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  /// Wakes all threads that wait, and makes later waits return at once.
  void give_up();
  bool given_up() const { return given_up_.load(std::memory_order_acquire); }

 private:
  // More are never counted as finished than as submitted, if the latter are counted afterwards.
  std::uint64_t finished_in(std::memory_order order) const { return finished_.load(order) + retired_outside(order); }
  // At least what it was when this began, at most what it is when it ends.
  std::uint64_t retired_outside(std::memory_order order) const {
    const std::size_t some = counting_.load(std::memory_order_seq_cst);
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < some; ++i) n += outside_[i].n.load(order);
    return n;
  }
  void raise_counting(std::size_t least);
  void wake_some(bool quiet_wanted, bool room_wanted);

  const std::size_t max_;
  const std::size_t drained_;  // threads held back at the bound go on when no more tasks are in flight
  // Beside what never changes: each submission reads them, and the counters below change all the time.
  std::atomic<bool> closed_{false}, given_up_{false};
  std::function<bool()> is_exempt_;  // null: no thread is
  std::atomic<bool> has_sides_{false};
  std::atomic<std::size_t> counting_{0};  // numbers that have ever counted
  struct alignas(64) counter {
    std::atomic<std::uint64_t> n{0};
    std::atomic<std::uint64_t> calls{0};  // of may_be_at_bound
  };
  std::array<counter, sides> aside_;
  alignas(64) std::atomic<std::uint64_t> submitted_{0};  // but by sides
  alignas(64) std::atomic<std::uint64_t> finished_{0};   // in turns
  std::uint64_t retired_ = 0;                            // with the turn
  struct alignas(64) retired {
    std::atomic<std::uint64_t> n{0};
  };
  std::array<retired, counters> outside_;  // without a turn
  alignas(64) std::atomic<int> quiet_waiters_{0}, bound_waiters_{0};
  std::mutex lock_;
  std::condition_variable changed_;
  std::uint64_t open_views_ = 0;  // of granted host accesses; with the turn
};

}  // namespace troupe::detail
