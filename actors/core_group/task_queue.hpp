// What this file is for: the ready tasks of one core group, and how many of those that it makes ready a thread keeps.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include <troupe/detail/task.hpp>

#include <troupe/detail/spin_lock.hpp>
#include "actors/core_group/handed_tasks.hpp"
#include "actors/core_group/ready_tasks.hpp"
#include "actors/protocol/executor.hpp"

namespace troupe::detail {

/// From which lane of a task_queue a thread takes first.
struct lane_preference {
  std::size_t own = 0;   ///< the lane that it puts tasks into itself
  bool is_own = false;   ///< that one first, else last
  std::size_t turn = 0;  ///< another one each time that its own is not the first, and for each thread
};

/// The ready tasks of a core group. Any thread may call.
///
/// Ready tasks lie in lanes. The first lane has tasks of all priorities, behind a lock. The others are rings, which
/// threads take from without one, and have tasks of the usual priority: each worker puts what it makes ready into one
/// that it shares with few, and threads that hand over one task after the other have a ring each. Tasks of a higher
/// priority go before all rings, those of a lower one after; of the rest a thread takes now from one lane and now from
/// another.
class task_queue : public task_worth {
 public:
  /// Lanes of the workers, beside the first.
  static constexpr std::size_t own_lanes = 8;
  /// Threads that hand tasks over at the same time.
  static constexpr std::size_t handing_max = 8;

  /// What a thread takes until it reports: from the queue, and of what its tasks make ready.
  struct share {
    std::size_t tasks = 0;
    float ns = 0;             ///< predicted work of all of them
    float ahead_ns = 0;       ///< of those that have not begun
    float worth_ns = 0;       ///< what other threads would save by running these
    std::uint64_t since = 0;  ///< ticks when it took the first
    unsigned begun = 0;
    bool open = true;            ///< false: no more is taken, so that what has ended is reported soon
    bool has_surprised = false;  ///< its tasks took far longer than predicted, which is known
    bool moves_cost = true;      ///< see task_worth::worth_of
    void add(float predicted_ns) {
      ++tasks;
      ns += predicted_ns;
      ahead_ns += predicted_ns;
      worth_ns += worth_of(predicted_ns, moves_cost);
    }
    /// Notes that a task of the share begins, and that so many are left: others may have taken some.
    void begins(float predicted_ns, std::size_t left) {
      ahead_ns = left == 0 ? 0 : ahead_ns - predicted_ns;
      worth_ns = left == 0 ? 0 : worth_ns - worth_of(predicted_ns, moves_cost);
    }
    /// Returns the sums of the tasks that have not begun, so many.
    sums ahead(std::size_t n) const { return {.ns = ahead_ns, .beside_ns = n > 1 ? worth_ns : 0.0f}; }
  };
  /// True if a thread with that share and so many tasks ahead is to keep one more, which its last task has just made
  /// ready, rather than put it into the queue. It does if it has none ahead: what the task reads is in its caches, and
  /// to pass through the queue moves it to another core, mostly. One more only if nothing waits in the queue and it is
  /// not worth the move: tasks run nearly in the order in which they became ready, as their records lie in memory. None
  /// while a task of a higher priority than that of tasks without options waits in the queue.
  bool is_to_keep(const share& s, std::size_t ahead) const {
    if (!s.open || s.tasks >= batch_max || s.ns >= batch_ns || first_.first() == ready_tasks::standing::before)
      return false;
    return ahead == 0 || (empty() && is_indivisible(s.ahead_ns, s.worth_ns, takers_));
  }

  explicit task_queue(int takers) : takers_(static_cast<std::size_t>(std::max(1, takers))) {}

  void push(std::span<task_record* const> tasks) { first_.push(tasks); }
  /// Adds early tasks of the usual priority to a lane of the calling worker's, below own_lanes.
  void push_own(std::span<task_record* const> tasks, std::size_t lane) {
    raise(own_used_, lane + 1);
    std::size_t n = 0;
    {
      std::lock_guard hold(own_[lane].pushing);
      n = own_[lane].tasks.push(tasks);
    }
    if (n < tasks.size()) first_.push(tasks.subspan(n));
  }
  /// Adds an early task without a priority. Of the threads with that number, below handing_max, one at a time.
  void hand(task_record& t, std::size_t number) {
    raise(handing_, number + 1);
    task_record* const one = &t;
    if (!handed_[number].push(t)) push_own({&one, 1}, number % own_lanes);
  }
  /// Returns what others would save by running what these threads have handed over, and now and then all that is
  /// queued: to look at that costs more than to order a task.
  float stealable_ns_of(std::size_t number) const {
    const handed_tasks& h = handed_[number];
    const bool all = h.pushes() % all_looked_at == 0 || h.size() == handed_tasks::capacity;
    return all ? stealable_ns() : h.stealable_ns(moves_cost());
  }
  /// True if a task of a higher priority than that one's waits.
  bool is_overtaken(const task_record& t) const {
    const int priority = priority_of(t);
    return first_.begins_above(priority) ||
           (priority < 0 && any_ring([](const handed_tasks& h) { return h.size() != 0; }));
  }
  /// Puts tasks that were taken and not started back, in their order and ahead of those of their priorities.
  void put_back(std::span<task_record* const> tasks) { first_.put_back(tasks); }
  /// Takes a fair share of the tasks of a lane, but no less work than is worth dividing; returns how many. `out` has
  /// room for batch_max.
  std::size_t take_batch(task_record** out, sums* of = nullptr, lane_preference p = {}) {
    const bool cost = moves_cost();
    const std::size_t own = own_used_.load(std::memory_order_relaxed),
                      handing = handing_.load(std::memory_order_relaxed);
    if (own == 0 && handing == 0) return first_.take_batch(out, takers_, cost, of);
    const ready_tasks::standing first = first_.first();
    if (first == ready_tasks::standing::before)
      if (const std::size_t n = first_.take_batch(out, takers_, cost, of)) return n;
    const auto of_own = [&](std::size_t lane) { return own_[lane].tasks.take_batch(out, takers_, cost, of); };
    const bool has_own = p.own < own;
    if (has_own && p.is_own)
      if (const std::size_t n = of_own(p.own)) return n;
    const auto of_handed = [&]() -> std::size_t {
      for (std::size_t i = 0; i < handing; ++i)
        if (const std::size_t n = handed_[(p.turn / 2 + i) % handing].take_batch(out, takers_, cost, of)) return n;
      return 0;
    };
    // The first lane, unless what it has comes last, and those of the other workers. The first is left to a thread that
    // has its lock, if there are tasks elsewhere.
    bool busy = false;
    const std::size_t with_first = first == ready_tasks::standing::after ? 0 : 1;
    const std::size_t lanes = with_first + own - (has_own ? 1 : 0), lane_turn = handing == 0 ? p.turn : p.turn / 2;
    const auto of_lanes = [&]() -> std::size_t {
      for (std::size_t i = 0; i < lanes; ++i) {
        const std::size_t at = (lane_turn + i) % lanes;
        if (at < with_first) {
          if (const std::size_t n = first_.try_take_batch(out, takers_, cost, of, busy)) return n;
          continue;
        }
        const std::size_t lane = at - with_first;
        if (const std::size_t n = of_own(has_own && lane >= p.own ? lane + 1 : lane)) return n;
      }
      return 0;
    };
    // Lanes and what was handed over come first in turn: most of the lanes may be empty.
    const bool handed_first = p.turn % 2 == 0;
    if (const std::size_t n = handed_first ? of_handed() : of_lanes()) return n;
    if (const std::size_t n = handed_first ? of_lanes() : of_handed()) return n;
    if (has_own && !p.is_own)
      if (const std::size_t n = of_own(p.own)) return n;
    return busy || with_first == 0 ? first_.take_batch(out, takers_, cost, of) : 0;
  }
  /// Takes the first task, among the first 64 of the first lane and the oldest of each ring, of a higher priority than
  /// `above` or for which `fits(predicted ns)`; null: none.
  template <class Fits>
  task_record* take_passing(int above, Fits&& fits) {
    const bool is_late = first_.first() == ready_tasks::standing::after;
    task_record* got = is_late ? nullptr : first_.take_passing(above, fits);
    any_ring([&](handed_tasks& h) {
      return (got = got ? got : h.take_passing([&](float ns) { return 0 > above || fits(ns); }));
    });
    return got || !is_late ? got : first_.take_passing(above, fits);
  }
  /// Takes the task `t` if it is among the newest 64 of the first lane, or the oldest of a ring; true if it was.
  bool take(task_record& t) {
    return (first_.size() != 0 && first_.take(t)) || any_ring([&](handed_tasks& h) { return h.take_first(t); });
  }
  /// Takes tasks of the first lane that `wanted` agrees to, the newest of the lowest priority first.
  template <class Wanted>
  std::size_t take_newest(std::span<task_record*> room, Wanted&& wanted) {
    return first_.take_newest(room, wanted);
  }
  /// Takes tasks of the rings that `wanted` agrees to. Others come into the first lane, and are in no queue for a
  /// moment: call threads if any is left.
  template <class Wanted>
  std::size_t take_early(std::span<task_record*> room, Wanted&& wanted) {
    std::size_t n = 0;
    any_ring([&](handed_tasks& h) {
      const std::span<task_record*> got = h.take_all(room.subspan(n));
      const auto rest = std::stable_partition(got.begin(), got.end(), [&](task_record* t) { return wanted(*t); });
      n += static_cast<std::size_t>(rest - got.begin());
      first_.push(got.subspan(static_cast<std::size_t>(rest - got.begin())));
      return n == room.size();
    });
    return n;
  }

  bool empty() const {
    return first_.size() == 0 && !any_ring([](const handed_tasks& h) { return h.size() != 0; });
  }
  std::size_t size() const {
    return sum<std::size_t>([](const auto& l) { return l.size(); });
  }
  /// Returns the size, sequentially consistent: for a thread that has just announced that it goes to sleep.
  std::size_t size_now() const {
    return sum<std::size_t>([](const auto& l) { return l.size_now(); });
  }
  /// Returns how often tasks have been taken: as long as it stays the same, no thread has come.
  std::uint32_t takes() const {
    return sum<std::uint32_t>([](const auto& l) { return static_cast<std::uint32_t>(l.takes()); });
  }
  /// Returns what other threads would save by running the tasks: less than their work, as moving them has a price.
  float stealable_ns() const {
    return sum<float>([cost = moves_cost()](const auto& l) { return l.stealable_ns(cost); });
  }
  /// Returns what threads of other executors would save by running those of the tasks that are not early: of the first
  /// lane, as rings have no others.
  float movable_ns() const { return first_.movable_ns(); }
  bool has_movable() const { return first_.has_movable(); }
  /// False if tasks cost the same on any core.
  bool moves_cost() const { return moves_cost_.load(std::memory_order_relaxed); }
  void set_moves_cost(bool now) {
    if (now != moves_cost()) moves_cost_.store(now, std::memory_order_relaxed);
  }
  /// Returns the load of the early tasks among them.
  unplaced_load unplaced() const {
    unplaced_load all;
    const auto add = [&](const unplaced_load& of) {
      all.tasks += of.tasks;
      all.ns += of.ns;
    };
    add(first_.unplaced());
    any_ring([&](const handed_tasks& h) {
      add(h.unplaced());
      return false;
    });
    return all;
  }

 private:
  static constexpr std::uint64_t all_looked_at = 8;

  // Workers with the same lane push one at a time.
  struct own_lane {
    spin_lock pushing;
    handed_tasks tasks;
  };

  // Calls `f(ring)` for each ring that ever had a task until it returns true; true if it did.
  template <class F>
  bool any_ring(F&& f) {
    const auto own = std::span(own_).first(own_used_.load(std::memory_order_seq_cst));
    const auto handed = std::span(handed_).first(handing_.load(std::memory_order_seq_cst));
    return std::any_of(own.begin(), own.end(), [&](own_lane& l) { return f(l.tasks); }) ||
           std::any_of(handed.begin(), handed.end(), f);
  }
  template <class F>
  bool any_ring(F&& f) const {
    return const_cast<task_queue*>(this)->any_ring([&](const handed_tasks& h) { return f(h); });
  }
  // Raises a number that many read and that hardly ever changes.
  static void raise(std::atomic<std::size_t>& n, std::size_t least) {
    for (std::size_t now = n.load(std::memory_order_seq_cst); now < least;)
      if (n.compare_exchange_weak(now, least, std::memory_order_seq_cst)) break;
  }
  template <class T, class Of>
  T sum(Of&& of) const {
    T all = of(first_);
    any_ring([&](const handed_tasks& h) {
      all += of(h);
      return false;
    });
    return all;
  }

  const std::size_t takers_;
  std::atomic<std::size_t> own_used_{0};  // lanes that ever had a task
  std::atomic<std::size_t> handing_{0};   // threads that ever handed one over
  std::atomic<bool> moves_cost_{true};
  ready_tasks first_;
  std::array<own_lane, own_lanes> own_;
  std::array<handed_tasks, handing_max> handed_;
};

}  // namespace troupe::detail
