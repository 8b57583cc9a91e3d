// What this file is for: ready tasks that one thread at a time hands to all others, without a lock.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A thread that orders its tasks itself hands over those that are ready at once, one by one. With a lock each of them
// would move three cache lines there and back, and the thread would wait for each; here it stores, and waits once. A
// worker that has made ready what all others wait for hands it to all of them at once: each takes with one atomic
// instruction, where behind a lock they would stand in line.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <troupe/detail/task.hpp>

#include "actors/core_group/task_worth.hpp"
#include "actors/protocol/executor.hpp"

namespace troupe::detail {

/// A ring of early tasks without a priority, oldest first. One thread at a time pushes, any takes.
class handed_tasks : public task_worth {
 public:
  static constexpr std::size_t capacity = 256;

  /// Adds a task; false if there is no room. Sequentially consistent: the caller looks at the sleepers next.
  bool push(task_record& t) {
    task_record* const one = &t;
    return push({&one, 1}) == 1;
  }
  /// The same for several; returns how many of them, the first ones, there was room for.
  std::size_t push(std::span<task_record* const> tasks) {
    const std::uint64_t at = end_.load(std::memory_order_relaxed);
    if (capacity - (at - free_until_) < tasks.size()) free_until_ = begin_.load(std::memory_order_acquire);
    const std::size_t n = std::min(tasks.size(), static_cast<std::size_t>(capacity - (at - free_until_)));
    if (n == 0) return 0;
    amounts all = pushed_.load();
    for (std::size_t i = 0; i < n; ++i) {
      const float ns = tasks[i]->predicted_ns;
      slot& s = slots_[(at + i) % capacity];
      s.task.store(tasks[i], std::memory_order_relaxed);
      s.ns.store(ns, std::memory_order_relaxed);
      s.before.store(all);
      all += sums_of(ns);
    }
    pushed_.store(all);
    end_.store(at + n, std::memory_order_seq_cst);
    return n;
  }
  /// Takes a fair share of the tasks for one of so many `takers`, but no less work than is worth dividing; returns how
  /// many. `out` has room for batch_max.
  std::size_t take_batch(task_record** out, std::size_t takers, bool moves_cost, sums* of) {
    for (;;) {
      const std::uint64_t from = begin_.load(std::memory_order_acquire);
      const std::uint64_t until = end_.load(std::memory_order_acquire);
      if (from >= until) return 0;
      sums all{.moves_cost = moves_cost};
      portion mine(static_cast<std::size_t>(until - from), takers, moves_cost);
      for (std::uint64_t at = from; at < until && mine.has_room(); ++at) {
        const slot& s = slots_[at % capacity];
        out[mine.size()] = s.task.load(std::memory_order_relaxed);
        mine.add(s.ns.load(std::memory_order_relaxed), &all);
      }
      if (!take_up_to(from, mine.size())) continue;
      if (of) *of = all;
      return mine.size();
    }
  }
  /// Takes the task `t` if it is the oldest; true if it was.
  bool take_first(task_record& t) {
    const std::uint64_t from = begin_.load(std::memory_order_acquire);
    if (from >= end_.load(std::memory_order_acquire)) return false;
    const slot& s = slots_[from % capacity];
    return s.task.load(std::memory_order_relaxed) == &t && take_up_to(from, 1);
  }
  /// Takes the oldest task if `fits(predicted ns)`; null: it does not, or there is none.
  template <class Fits>
  task_record* take_passing(Fits&& fits) {
    for (;;) {
      const std::uint64_t from = begin_.load(std::memory_order_acquire);
      if (from >= end_.load(std::memory_order_acquire)) return nullptr;
      const slot& s = slots_[from % capacity];
      task_record* const t = s.task.load(std::memory_order_relaxed);
      if (!fits(s.ns.load(std::memory_order_relaxed))) return nullptr;
      if (take_up_to(from, 1)) return t;
    }
  }
  /// Takes as many as there is room for; returns them.
  std::span<task_record*> take_all(std::span<task_record*> room) {
    for (;;) {
      const std::uint64_t from = begin_.load(std::memory_order_acquire);
      const std::uint64_t until = end_.load(std::memory_order_acquire);
      const std::size_t n = from < until ? std::min(static_cast<std::size_t>(until - from), room.size()) : 0;
      for (std::size_t i = 0; i < n; ++i) room[i] = slots_[(from + i) % capacity].task.load(std::memory_order_relaxed);
      if (n == 0 || take_up_to(from, n)) return room.first(n);
    }
  }

  std::size_t size() const { return difference(std::memory_order_relaxed); }
  /// Returns the size, sequentially consistent: for a thread that has just announced that it goes to sleep.
  std::size_t size_now() const { return difference(std::memory_order_seq_cst); }
  /// Returns how many have been pushed.
  std::uint64_t pushes() const { return end_.load(std::memory_order_relaxed); }
  /// Returns how many have been taken.
  std::uint64_t takes() const { return begin_.load(std::memory_order_relaxed); }
  /// See ready_tasks.
  float stealable_ns(bool moves_cost) const {
    const amounts all = left();
    return static_cast<float>(moves_cost ? all.worth_ns : all.work_ns);
  }
  /// Returns the load of the tasks, all of which are early.
  unplaced_load unplaced() const {
    const std::size_t n = size();
    return {static_cast<int>(n), n == 0 ? 0 : static_cast<float>(left().work_ns)};
  }

 private:
  // Sums of whole nanoseconds: what comes and what goes is exactly the same.
  struct amounts {
    std::uint64_t worth_ns = 0, work_ns = 0;
    void operator+=(const amounts& o) {
      worth_ns += o.worth_ns;
      work_ns += o.work_ns;
    }
  };
  class counters {
   public:
    amounts load() const {
      return {worth_ns_.load(std::memory_order_relaxed), work_ns_.load(std::memory_order_relaxed)};
    }
    void store(const amounts& a) {
      worth_ns_.store(a.worth_ns, std::memory_order_relaxed);
      work_ns_.store(a.work_ns, std::memory_order_relaxed);
    }

   private:
    std::atomic<std::uint64_t> worth_ns_{0}, work_ns_{0};
  };
  struct slot {
    std::atomic<task_record*> task{nullptr};
    std::atomic<float> ns{0};
    counters before;  // sums of all that was pushed before it: what is left follows from that of the oldest
  };

  static amounts sums_of(float ns) {
    return {static_cast<std::uint64_t>(worth_of(ns, true)), static_cast<std::uint64_t>(worth_of(ns, false))};
  }
  // Takes `n` tasks that were read from `from` on; false: they are other threads'. What was read is what these places
  // had if nobody has taken any since: a place is used again only then.
  bool take_up_to(std::uint64_t from, std::size_t n) {
    return begin_.compare_exchange_strong(from, from + n, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  // Others may take and push meanwhile: the oldest may be a later one by then, its place another's.
  amounts left() const {
    const std::uint64_t from = begin_.load(std::memory_order_relaxed);
    if (from >= end_.load(std::memory_order_acquire)) return {};
    const amounts gone = slots_[from % capacity].before.load(), all = pushed_.load();
    const auto difference = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
    return {difference(all.worth_ns, gone.worth_ns), difference(all.work_ns, gone.work_ns)};
  }
  std::size_t difference(std::memory_order order) const {
    const std::uint64_t from = begin_.load(order), until = end_.load(order);
    return until > from ? static_cast<std::size_t>(until - from) : 0;
  }

  alignas(64) std::atomic<std::uint64_t> end_{0};
  counters pushed_;
  std::uint64_t free_until_ = 0;  // what the pushing thread knows of begin_
  alignas(64) std::atomic<std::uint64_t> begin_{0};
  alignas(64) std::array<slot, capacity> slots_;
};

}  // namespace troupe::detail
