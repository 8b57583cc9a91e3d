// What this file is for: the threads of a core group, and those from outside that have borrowed a worker of it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/core_group/worker.hpp"

namespace troupe::detail {

/// The workers of a group. Threads that have been dismissed leave theirs to the next one that begins; a thread from
/// outside borrows one while it runs a task. Any thread.
class worker_threads {
 public:
  /// `open_lane`: opens the trace lane of a new worker. `main`: makes what the thread of a worker runs, which keeps all
  /// alive that the thread uses.
  worker_threads(const workplace& where, std::function<void(worker&, bool helps)> open_lane,
                 std::function<std::function<void()>(std::shared_ptr<worker>)> main)
      : where_(where), open_lane_(std::move(open_lane)), main_(std::move(main)) {}

  /// Begins a thread. Throws std::system_error where the system gives none.
  void add();
  /// The same; false: the system gives none.
  bool try_add();
  /// Notes that the thread of a worker is about to end.
  void ended(worker&);
  /// Waits until all threads have ended and no worker is borrowed; false: not in time. Those that have not ended are
  /// left to themselves.
  bool wait_ended(std::chrono::steady_clock::time_point deadline);
  /// Returns the number of threads that have not ended.
  int count() const;

  /// Lends a worker to the calling thread, with a slot that has been borrowed for it.
  worker& take_helper();
  void give_helper(worker&);

  /// Calls f(worker) for each, those of helpers too.
  template <class F>
  void each(F&& f) const {
    const std::lock_guard hold(lock_);
    for (const auto& w : threads_) f(*w);
    for (const auto& w : helpers_) f(*w);
  }
  /// Calls f(worker) for those that have threads of the group's.
  template <class F>
  void each_own(F&& f) const {
    const std::lock_guard hold(lock_);
    for (const auto& w : threads_) f(*w);
  }
  /// Calls f(worker) for each, unless somebody else looks at them now: then false.
  template <class F>
  bool try_each(F&& f) const {
    const std::unique_lock look(lock_, std::try_to_lock);
    if (!look) return false;
    for (const auto& w : threads_) f(*w);
    for (const auto& w : helpers_) f(*w);
    return true;
  }
  /// Finds the first worker with a thread of the group's that `wanted` accepts; `busy`: somebody else looks at them
  /// now.
  template <class F>
  std::shared_ptr<worker> try_find(bool& busy, F&& wanted) const {
    const std::unique_lock look(lock_, std::try_to_lock);
    busy = !look;
    if (look)
      for (const auto& w : threads_)
        if (wanted(*w)) return w;
    return nullptr;
  }

 private:
  const workplace& where_;
  const std::function<void(worker&, bool helps)> open_lane_;
  const std::function<std::function<void()>(std::shared_ptr<worker>)> main_;
  mutable std::mutex lock_;
  std::condition_variable ended_;
  std::vector<std::shared_ptr<worker>> threads_;
  std::vector<std::unique_ptr<worker>> helpers_;
  std::vector<worker*> helpers_free_;
};

}  // namespace troupe::detail
