// What this file is for: ready tasks behind one lock, and how much of them a thread takes at once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>

#include <troupe/detail/task.hpp>

#include <troupe/detail/spin_lock.hpp>
#include "actors/core_group/task_worth.hpp"
#include "actors/logic/scheduling/ready_queue.hpp"
#include "actors/protocol/executor.hpp"

namespace troupe::detail {

/// Ready tasks, in order of priority, then as given. Any thread may call; counts may be read without taking the lock.
class ready_tasks : public task_worth {
 public:
  void push(std::span<task_record* const> tasks) {
    std::lock_guard hold(lock_);
    for (task_record* t : tasks) {
      const entry e = entry_of(*t);
      ready_.push(e, priority_of(*t));
      came(e);
    }
    note_added();
  }
  /// Puts tasks that were taken and not started back, in their order and ahead of those of their priorities.
  void put_back(std::span<task_record* const> tasks) {
    if (tasks.empty()) return;
    std::lock_guard hold(lock_);
    for (std::size_t i = tasks.size(); i != 0; --i) {
      const entry e = entry_of(*tasks[i - 1]);
      ready_.push_front(e, priority_of(*tasks[i - 1]));
      came(e);
    }
    note_added();
  }
  /// Takes a fair share of the tasks for one of so many `takers`, but no less work than is worth dividing; returns how
  /// many. `out` has room for batch_max.
  std::size_t take_batch(task_record** out, std::size_t takers, bool moves_cost, sums* of) {
    if (size() == 0) return 0;
    std::lock_guard hold(lock_);
    return take_batch_held(out, takers, moves_cost, of);
  }
  /// The same, unless another thread has the lock: none then, and `busy` is set.
  std::size_t try_take_batch(task_record** out, std::size_t takers, bool moves_cost, sums* of, bool& busy) {
    if (size() == 0) return 0;
    std::unique_lock hold(lock_, std::try_to_lock);
    if (hold) return take_batch_held(out, takers, moves_cost, of);
    busy = true;
    return 0;
  }
  /// Takes the first task, among the first 64, of a higher priority than `above` or for which `fits(predicted ns)`;
  /// null: none.
  template <class Fits>
  task_record* take_passing(int above, Fits&& fits) {
    if (size() == 0) return nullptr;
    std::lock_guard hold(lock_);
    task_record* got = nullptr;
    ready_.take_first(
        reach, [&](const entry& e) { return !got && (priority_of(*e.task) > above || fits(e.ns)); },
        [&](const entry& e) {
          got = e.task;
          went(e);
        });
    if (got) note_taken();
    return got;
  }
  /// Takes the task `t` if it is among the newest 64; true if it was.
  bool take(task_record& t) {
    std::lock_guard hold(lock_);
    const bool found = ready_.take({&t}, reach);  // of another task nothing may be read: others write it
    if (found) went(entry_of(t));
    note_taken();
    return found;
  }
  /// Takes the newest tasks that `wanted` agrees to; see executor::take_back.
  template <class Wanted>
  std::size_t take_newest(std::span<task_record*> room, Wanted&& wanted) {
    std::lock_guard hold(lock_);
    std::size_t n = 0;
    ready_.take_newest(
        room.size(), [&](const entry& e) { return wanted(*e.task); },
        [&](const entry& e) {
          went(e);
          room[n++] = e.task;
        });
    note_taken();
    return n;
  }

  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  /// Returns the size, sequentially consistent: for a thread that has just announced that it goes to sleep.
  std::size_t size_now() const { return size_.load(std::memory_order_seq_cst); }
  /// Returns how often tasks have been taken: as long as it stays the same, no thread has come.
  std::uint32_t takes() const { return takes_.load(std::memory_order_relaxed); }
  /// Returns what other threads would save by running the tasks: less than their work, as moving them has a price.
  float stealable_ns(bool moves_cost) const {
    return (moves_cost ? published_.worth_ns : published_.work_ns).load(std::memory_order_relaxed);
  }
  /// Where the first task stands among tasks without options: before them, with them, after them.
  enum class standing : signed char { after = -1, with = 0, before = 1 };
  standing first() const {
    const int p = first_priority_.load(std::memory_order_relaxed);
    return p == nothing || p == 0 ? standing::with : p > 0 ? standing::before : standing::after;
  }
  /// True if the first task has a higher priority than that.
  bool begins_above(int priority) const { return first_priority_.load(std::memory_order_relaxed) > priority; }
  /// Returns what threads of another executor would save by running those of the tasks that are not early.
  float movable_ns() const { return published_.movable_ns.load(std::memory_order_relaxed); }
  /// True if there are such tasks.
  bool has_movable() const { return published_.has_movable.load(std::memory_order_relaxed); }
  /// Returns the load of the early tasks among them.
  unplaced_load unplaced() const {
    std::lock_guard hold(lock_);
    return unplaced_;
  }

 private:
  // How many tasks from the end `take` looks at, and from the beginning `take_passing`.
  static constexpr std::size_t reach = 64;
  // The priority of the first task where there is none: not above any.
  static constexpr int nothing = std::numeric_limits<int>::min();

  // A task with its predicted time: a thread that takes a batch does not read records that another core wrote.
  struct entry {
    task_record* task = nullptr;
    float ns = 0;
    bool early = false;
    explicit operator bool() const { return task != nullptr; }
    bool operator==(const entry& o) const { return task == o.task; }
  };

  std::size_t take_batch_held(task_record** out, std::size_t takers, bool moves_cost, sums* of) {
    const bool is_late = !ready_.begins_above(-1);
    if (of) of->moves_cost = moves_cost;
    portion mine(ready_.size(), takers, moves_cost);
    while (mine.has_room()) {
      // Tasks of a lower priority than the usual one come after what other lanes have.
      if (mine.size() != 0 && !is_late && !ready_.begins_above(-1)) break;
      const entry e = ready_.pop();
      if (!e) break;
      out[mine.size()] = e.task;
      mine.add(e.ns, of);
      if (of && !e.early) of->movable = true;
      went(e);
    }
    note_taken();
    return mine.size();
  }
  static entry entry_of(task_record& t) { return {&t, t.predicted_ns, (t.marks & mark_early) != 0}; }
  void came(const entry& e) {
    worth_ns_ += worth_of(e.ns, true);
    work_ns_ += worth_of(e.ns, false);
    if (!e.early) {
      movable_ns_ += worth_of(e.ns, true);
      return;
    }
    ++unplaced_.tasks;
    unplaced_.ns += e.ns;
  }
  void went(const entry& e) {
    worth_ns_ -= worth_of(e.ns, true);
    work_ns_ -= worth_of(e.ns, false);
    if (!e.early) {
      movable_ns_ -= worth_of(e.ns, true);
      return;
    }
    --unplaced_.tasks;
    unplaced_.ns -= e.ns;
  }
  // Publishes the counts after tasks were added. Sequentially consistent: the adding thread looks at the sleepers next,
  // and must not do so too early. A thread that takes tasks has no one to notify.
  void note_added() {
    note_first();
    publish_worth();
    size_.store(ready_.size(), std::memory_order_seq_cst);
  }
  void note_taken() {
    if (ready_.empty()) worth_ns_ = work_ns_ = 0;
    if (unplaced_.tasks == 0) unplaced_.ns = 0;
    takes_.store(takes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // one writer, by the lock
    note_first();
    publish_worth();
    size_.store(ready_.size(), std::memory_order_relaxed);
  }
  void publish_worth() {
    published_.worth_ns.store(worth_ns_, std::memory_order_relaxed);
    published_.work_ns.store(work_ns_, std::memory_order_relaxed);
    const bool movable = ready_.size() > static_cast<std::size_t>(unplaced_.tasks);
    if (!movable) movable_ns_ = 0;
    if (movable_ns_ != movable_ns()) published_.movable_ns.store(movable_ns_, std::memory_order_relaxed);
    if (movable != has_movable()) published_.has_movable.store(movable, std::memory_order_relaxed);
  }
  void note_first() {
    const int now = ready_.first_priority(nothing);
    if (now != first_priority_.load(std::memory_order_relaxed)) first_priority_.store(now, std::memory_order_relaxed);
  }

  alignas(64) mutable spin_lock lock_;
  alignas(64) logic::ready_queue<entry> ready_;
  float worth_ns_ = 0, work_ns_ = 0;  // where moves cost, and where they do not
  float movable_ns_ = 0;              // the part of worth_ns_ that is not of early tasks
  unplaced_load unplaced_;
  alignas(64) std::atomic<std::size_t> size_{0};
  struct {
    std::atomic<float> worth_ns{0}, work_ns{0}, movable_ns{0};
    std::atomic<bool> has_movable{false};
  } published_;
  std::atomic<std::uint32_t> takes_{0};
  alignas(64) std::atomic<int> first_priority_{nothing};  // read for each task; hardly ever changes
};

}  // namespace troupe::detail
