// What this file is for: the ready tasks of one core group, how much work they are, and how much of it one thread takes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include <troupe/detail/task.hpp>

#include "actors/logic/scheduling/ready_queue.hpp"
#include "actors/protocol/spin_lock.hpp"

namespace troupe::detail {

/// Any thread may call. Counts may be read without taking the lock.
class task_queue {
 public:
  /// A thread takes at most this many at once, and not more than this much predicted work: long tasks spread over
  /// the threads.
  static constexpr std::size_t batch_max = 32;
  static constexpr float batch_ns = 80'000.0f;
  /// What a task that nobody has timed is worth to another thread.
  static constexpr float unknown_ns = 20'000.0f;
  /// Work that nobody divides.
  static constexpr float crumb_ns = 1'000.0f;
  /// What it costs to move a task to another core: its record and its data's state travel.
  static constexpr float move_ns = 200.0f;

  explicit task_queue(int takers) : takers_(static_cast<std::size_t>(std::max(1, takers))) {}

  void push(std::span<task_record* const> tasks) {
    std::lock_guard hold(lock_);
    for (task_record* t : tasks) {
      ready_.push({t, t->predicted_ns}, priority_of(*t));
      worth_ns_ += worth_of(t->predicted_ns);
    }
    note_added();
  }
  /// Ahead of its equals: it has been taken and not started.
  void put_back(task_record& t) {
    std::lock_guard hold(lock_);
    ready_.push_front({&t, t.predicted_ns}, priority_of(t));
    worth_ns_ += worth_of(t.predicted_ns);
    note_added();
  }
  /// A fair share of what is there, or what is too little to be shared. `out` has room for batch_max.
  std::size_t take_batch(task_record** out) {
    if (size() == 0) return 0;
    std::lock_guard hold(lock_);
    const std::size_t share = ready_.size() / (2 * takers_);
    std::size_t n = 0;
    float work = 0;
    while (n < batch_max && (n < share || work < crumb_ns)) {
      const entry e = ready_.pop();
      if (!e) break;
      out[n++] = e.task;
      worth_ns_ -= worth_of(e.ns);
      work += work_of(e.ns);
      if (work >= batch_ns) break;
    }
    note_taken();
    return n;
  }
  /// One of the first that is of a higher priority than that, or that `fits(predicted ns)`; null: none.
  template <class Fits>
  task_record* take_passing(int above, Fits&& fits) {
    if (size() == 0) return nullptr;
    std::lock_guard hold(lock_);
    task_record* got = nullptr;
    ready_.take_first(
        reach, [&](const entry& e) { return !got && (priority_of(*e.task) > above || fits(e.ns)); },
        [&](const entry& e) {
          got = e.task;
          worth_ns_ -= worth_of(e.ns);
        });
    if (got) note_taken();
    return got;
  }
  /// This one, if it is among the newest.
  bool take(task_record& t) {
    std::lock_guard hold(lock_);
    const bool found = ready_.take({&t, 0}, reach);
    if (found) worth_ns_ -= worth_of(t.predicted_ns);
    note_taken();
    return found;
  }
  /// See executor::take_back.
  template <class Wanted>
  std::size_t take_newest(std::span<task_record*> room, Wanted&& wanted) {
    std::lock_guard hold(lock_);
    std::size_t n = 0;
    ready_.take_newest(
        room.size(), [&](const entry& e) { return wanted(*e.task); },
        [&](const entry& e) {
          worth_ns_ -= worth_of(e.ns);
          room[n++] = e.task;
        });
    note_taken();
    return n;
  }

  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  /// For a thread that has just announced that it goes to sleep.
  std::size_t size_now() const { return size_.load(std::memory_order_seq_cst); }
  /// How often something has been taken: as long as it stays the same, nobody has come.
  std::uint32_t takes() const { return takes_.load(std::memory_order_relaxed); }
  /// What other threads would save by running what is here: less than its work, as moving it has a price.
  float worth_ns() const { return published_worth_.load(std::memory_order_relaxed); }

 private:
  // How far from the end a waiter looks for the task that it waits for, and from the beginning who may pass.
  static constexpr std::size_t reach = 64;

  // With its predicted time: who takes a batch does not look at records that another core wrote.
  struct entry {
    task_record* task = nullptr;
    float ns = 0;
    explicit operator bool() const { return task != nullptr; }
    bool operator==(const entry& o) const { return task == o.task; }
  };

  static int priority_of(const task_record& t) { return t.extra ? t.extra->options.priority : 0; }
  // Kernels nobody has timed go one at a time.
  static float work_of(float ns) { return ns > 0 ? ns : batch_ns; }
  static float worth_of(float ns) { return ns > 0 ? std::max(0.0f, ns - move_ns) : unknown_ns; }
  // Who adds looks at the sleepers next, and must not do so too early; who takes has nobody to tell.
  void note_added() {
    published_worth_.store(worth_ns_, std::memory_order_relaxed);
    size_.store(ready_.size(), std::memory_order_seq_cst);
  }
  void note_taken() {
    if (ready_.empty()) worth_ns_ = 0;
    takes_.store(takes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // one writer, by the lock
    published_worth_.store(worth_ns_, std::memory_order_relaxed);
    size_.store(ready_.size(), std::memory_order_relaxed);
  }

  const std::size_t takers_;
  alignas(64) spin_lock lock_;
  logic::ready_queue<entry> ready_;
  float worth_ns_ = 0;
  alignas(64) std::atomic<std::size_t> size_{0};
  std::atomic<float> published_worth_{0};
  std::atomic<std::uint32_t> takes_{0};
};

}  // namespace troupe::detail
