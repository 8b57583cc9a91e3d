// What this file is for: the ready tasks of one core group, and how many of those that it makes ready a thread keeps.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <troupe/detail/task.hpp>

#include "actors/core_group/handed_tasks.hpp"
#include "actors/core_group/ready_tasks.hpp"
#include "actors/protocol/executor.hpp"

namespace troupe::detail {

/// From which lane of a task_queue a thread takes first.
struct lane_preference {
  std::size_t own = 0;   ///< the lane that it uses itself
  bool is_own = false;   ///< that one first, else last
  std::size_t turn = 0;  ///< another one each time that its own is not the first, and for each thread
};

/// The ready tasks of a core group. Any thread may call.
///
/// Ready tasks lie in lanes, each with a lock of its own. The first lane has tasks of all priorities. Into the others
/// go tasks of the usual one, each lane's from few threads, which would wait for each other at one lock. Tasks of a
/// higher priority go before all lanes, those of a lower one after; of the rest a thread takes now from one lane and
/// now from another. Threads that hand over one task after the other have a ring each, beside the lanes.
class task_queue : public task_worth {
 public:
  /// Lanes beside the first.
  static constexpr std::size_t own_lanes = 8;
  /// Threads that hand tasks over at the same time.
  static constexpr std::size_t handing_max = 8;

  /// What a thread takes until it reports: from the queue, and of what its tasks make ready.
  struct share {
    std::size_t tasks = 0;
    float ns = 0;                  ///< predicted work of all of them
    float ahead_ns = 0;            ///< of those that have not begun
    float worth_ns = 0;            ///< what other threads would save by running these
    bool open = true;              ///< false: no more is taken, so that what has ended is reported soon
    unsigned kept = 0;             ///< of what its tasks make ready
    std::uint64_t kept_since = 0;  ///< ticks when it kept the first
    bool moves_cost = true;        ///< see task_worth::worth_of
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
  /// to pass through the queue costs a lock. One more only if nothing waits in the queue and it is not worth the move:
  /// tasks run nearly in the order in which they became ready, as their records lie in memory. None while a task of a
  /// higher priority than that of tasks without options waits in the queue.
  bool is_to_keep(const share& s, std::size_t ahead) const {
    if (!s.open || s.tasks >= batch_max || s.ns >= batch_ns || lanes_[0].first() == ready_tasks::standing::before)
      return false;
    return ahead == 0 || (empty() && is_indivisible(s.ahead_ns, s.worth_ns, takers_));
  }

  explicit task_queue(int takers) : takers_(static_cast<std::size_t>(std::max(1, takers))) {}

  void push(std::span<task_record* const> tasks) { lanes_[0].push(tasks); }
  /// Adds tasks of the usual priority to a lane of the calling thread's, below own_lanes.
  void push_own(std::span<task_record* const> tasks, std::size_t lane) {
    raise(used_, lane + 2);  // with the first
    lanes_[lane + 1].push(tasks);
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
  /// Puts a task that was taken and not started back, ahead of those of its priority.
  void put_back(task_record& t) { lanes_[0].put_back(t); }
  /// Takes a fair share of the tasks of a lane or a ring, but no less work than is worth dividing; returns how many.
  /// `out` has room for batch_max.
  std::size_t take_batch(task_record** out, sums* of = nullptr, lane_preference p = {}) {
    const bool cost = moves_cost();
    const std::size_t used = used_.load(std::memory_order_relaxed), rings = handing_.load(std::memory_order_relaxed);
    if (used == 1 && rings == 0) return lanes_[0].take_batch(out, takers_, cost, of);
    const ready_tasks::standing first = lanes_[0].first();
    if (first == ready_tasks::standing::before)
      if (const std::size_t n = lanes_[0].take_batch(out, takers_, cost, of)) return n;
    const std::size_t from = first == ready_tasks::standing::after ? 1 : 0;
    const std::size_t own = p.own + 1;
    const bool has_own = own < used;
    const std::size_t lanes = used - from - (has_own ? 1 : 0), lane_turn = rings == 0 ? p.turn : p.turn / 2;
    const auto other = [&](std::size_t i) -> ready_tasks& {
      const std::size_t at = from + i;
      return lanes_[has_own && at >= own ? at + 1 : at];
    };
    // A lane whose lock another thread has is left to that one, if there is another lane with tasks.
    bool busy = false;
    if (has_own && p.is_own)
      if (const std::size_t n = lanes_[own].try_take_batch(out, takers_, cost, of, busy)) return n;
    const auto of_rings = [&]() -> std::size_t {
      for (std::size_t i = 0; i < rings; ++i)
        if (const std::size_t n = handed_[(p.turn / 2 + i) % rings].take_batch(out, takers_, cost, of)) return n;
      return 0;
    };
    // Rings and lanes come first in turn: most of the lanes may be empty.
    const bool rings_first = p.turn % 2 == 0;
    if (rings_first)
      if (const std::size_t n = of_rings()) return n;
    for (std::size_t i = 0; i < lanes; ++i)
      if (const std::size_t n = other((lane_turn + i) % lanes).try_take_batch(out, takers_, cost, of, busy)) return n;
    if (!rings_first)
      if (const std::size_t n = of_rings()) return n;
    if (has_own && (busy || !p.is_own))
      if (const std::size_t n = lanes_[own].take_batch(out, takers_, cost, of)) return n;
    for (std::size_t i = 0; i < lanes && busy; ++i)
      if (const std::size_t n = other((lane_turn + i) % lanes).take_batch(out, takers_, cost, of)) return n;
    return from == 0 ? 0 : lanes_[0].take_batch(out, takers_, cost, of);
  }
  /// Takes the first task, among the first 64 of a lane, of a higher priority than `above` or for which
  /// `fits(predicted ns)`; null: none.
  template <class Fits>
  task_record* take_passing(int above, Fits&& fits) {
    const bool is_late = lanes_[0].first() == ready_tasks::standing::after;
    for (ready_tasks& l : used().subspan(is_late ? 1 : 0))
      if (task_record* t = l.take_passing(above, fits)) return t;
    for (handed_tasks& h : handed())
      if (task_record* t = h.take_passing([&](float ns) { return 0 > above || fits(ns); })) return t;
    return is_late ? lanes_[0].take_passing(above, fits) : nullptr;
  }
  /// Takes the task `t` if it is among the newest 64 of a lane, or the first that a thread has handed over; true if it
  /// was.
  bool take(task_record& t) {
    for (ready_tasks& l : used())
      if (l.size() != 0 && l.take(t)) return true;
    const auto rings = handed();
    return std::any_of(rings.begin(), rings.end(), [&](handed_tasks& h) { return h.take_first(t); });
  }
  /// Takes tasks that `wanted` agrees to, the newest of a lane first, and those of the first lane last, where tasks of
  /// a higher priority are; see executor::take_back.
  template <class Wanted>
  std::size_t take_newest(std::span<task_record*> room, Wanted&& wanted) {
    std::size_t n = 0;
    // Tasks of rings are in no queue for a moment: call threads if any is left.
    for (handed_tasks& h : handed()) lanes_[0].push(h.take_all(room));
    for (ready_tasks& l : used().subspan(1))
      if (n < room.size()) n += l.take_newest(room.subspan(n), wanted);
    return n < room.size() ? n + lanes_[0].take_newest(room.subspan(n), wanted) : n;
  }

  bool empty() const {
    const auto is_empty = [](const auto& l) { return l.size() == 0; };
    const auto lanes = used();
    const auto rings = handed();
    return std::all_of(lanes.begin(), lanes.end(), is_empty) && std::all_of(rings.begin(), rings.end(), is_empty);
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
    for (const ready_tasks& l : used()) add(l.unplaced());
    for (const handed_tasks& h : handed()) add(h.unplaced());
    return all;
  }

 private:
  static constexpr std::uint64_t all_looked_at = 8;

  std::span<ready_tasks> used() { return {lanes_.data(), used_.load(std::memory_order_seq_cst)}; }
  std::span<const ready_tasks> used() const { return {lanes_.data(), used_.load(std::memory_order_seq_cst)}; }
  std::span<handed_tasks> handed() { return {handed_.data(), handing_.load(std::memory_order_seq_cst)}; }
  std::span<const handed_tasks> handed() const { return {handed_.data(), handing_.load(std::memory_order_seq_cst)}; }
  // Raises a number that many read and that hardly ever changes.
  static void raise(std::atomic<std::size_t>& n, std::size_t least) {
    for (std::size_t now = n.load(std::memory_order_seq_cst); now < least;)
      if (n.compare_exchange_weak(now, least, std::memory_order_seq_cst)) break;
  }
  template <class T, class Of>
  T sum(Of&& of) const {
    T all = of(lanes_[0]);
    for (const ready_tasks& l : used().subspan(1)) all += of(l);
    for (const handed_tasks& h : handed()) all += of(h);
    return all;
  }

  const std::size_t takers_;
  std::atomic<std::size_t> used_{1};     // lanes that ever had a task
  std::atomic<std::size_t> handing_{0};  // threads that ever handed one over
  std::atomic<bool> moves_cost_{true};
  std::array<ready_tasks, 1 + own_lanes> lanes_;
  std::array<handed_tasks, handing_max> handed_;
};

}  // namespace troupe::detail
