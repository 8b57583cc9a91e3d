// What this file is for: calls to placement, and references to give back, that wait until a lock is released.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mutex>
#include <utility>
#include <vector>

namespace troupe::detail {

struct array_core;
struct task_record;

/// Gathers calls under the service's lock.
class deferred_calls {
 public:
  /// Calls that belong to the thread that took them. It makes them without the lock: host accesses are closed, then
  /// tasks submitted, then references given back.
  struct batch {
    std::vector<task_record*> close, submit, released;
    std::vector<array_core*> dropped;
  };

  void submit(task_record& t) { calls_.submit.push_back(&t); }
  void close(task_record& t) { calls_.close.push_back(&t); }
  void release(task_record& t) { calls_.released.push_back(&t); }
  void drop(array_core& a) { calls_.dropped.push_back(&a); }
  /// Returns what has been gathered. Reserves as much again: about as many will come next.
  batch take() {
    batch fresh;
    fresh.close.reserve(calls_.close.size());
    fresh.submit.reserve(calls_.submit.size());
    fresh.released.reserve(calls_.released.size());
    fresh.dropped.reserve(calls_.dropped.size());
    return std::exchange(calls_, std::move(fresh));
  }

 private:
  batch calls_;
};

/// Notes that placement makes of tasks while it has the turn: granted, else retired. Any thread adds; one at a time
/// takes.
class turn_notes {
 public:
  struct note {
    task_record* task;
    bool was_granted;
  };
  void add(task_record& t, bool was_granted) {
    std::lock_guard hold(lock_);
    notes_.push_back({&t, was_granted});
  }
  /// Returns the notes since the last call; valid until the next.
  const std::vector<note>& take() {
    taken_.clear();
    std::lock_guard hold(lock_);
    taken_.swap(notes_);
    return taken_;
  }

 private:
  std::mutex lock_;
  std::vector<note> notes_;
  std::vector<note> taken_;
};

}  // namespace troupe::detail
