// What this file is for: where threads sleep until a task is done.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include <troupe/detail/task.hpp>

#include "actors/protocol/late_wakes.hpp"

namespace troupe::detail {

/// Seats for threads that wait for tasks. The end of a task wakes those that wait for it and no others; one that no
/// thread waits for costs nothing. Any thread calls any function.
class wait_table {
 public:
  /// Sleeps until the task is done or the time has come; true if done.
  bool wait(task_record& t, std::chrono::steady_clock::time_point deadline) {
    bucket& b = of(t);
    std::unique_lock hold(b.lock);
    if ((t.phase.fetch_or(phase_watched, std::memory_order_acq_rel) & phase_mask) == phase_done) return true;
    const auto done = [&] { return (t.phase.load(std::memory_order_acquire) & phase_mask) == phase_done; };
    const occupied mine(b, t);
    if (deadline == std::chrono::steady_clock::time_point::max()) {
      mine.changed().wait(hold, done);
      return true;
    }
    return mine.changed().wait_until(hold, deadline, done);
  }
  /// Sleeps until the task is done: true. Asks meanwhile whether to go on, after 20 ms, then less and less often, up to
  /// a second, and not before a hundred times what the last question took; false: the answer was no.
  template <class F>
  bool wait_asking(task_record& t, F&& goes_on) {
    using std::chrono::steady_clock;
    constexpr std::chrono::milliseconds first{20}, last{1'000};
    constexpr int share_of_question = 100;  // a question holds up all decisions
    steady_clock::duration took{0};
    for (auto nap = first;; nap = std::min(2 * nap, last)) {
      const steady_clock::time_point begin = steady_clock::now();
      if (wait(t, begin + std::max<steady_clock::duration>(nap, share_of_question * took))) return true;
      const steady_clock::time_point asked = steady_clock::now();
      if (!goes_on()) return false;
      took = steady_clock::now() - asked;
    }
  }
  /// Wakes the threads that wait for the task, which is done; see late_wakes.
  void announce(const task_record& t) noexcept {
    bucket& b = of(t);
    late_wakes here;
    here.begin();  // they want the lock
    {
      std::lock_guard hold(b.lock);
      for (seat* s = b.taken; s; s = s->next)
        if (s->task == &t) late_wakes::wake(s->changed);
    }
    here.end().wake();
  }

 private:
  // A thread has one while it waits. Seats are kept: a wake-up may come when its thread has left.
  struct seat {
    std::condition_variable changed;
    const task_record* task = nullptr;
    seat* next = nullptr;
  };
  struct alignas(64) bucket {
    std::mutex lock;
    seat* taken = nullptr;
    seat* free = nullptr;
    std::deque<seat> all;
  };
  // A seat, from construction to destruction; both with the bucket's lock.
  class occupied {
   public:
    occupied(bucket& b, const task_record& t) : of_(b), seat_(b.free ? b.free : &b.all.emplace_back()) {
      if (b.free) b.free = seat_->next;
      seat_->task = &t;
      seat_->next = std::exchange(b.taken, seat_);
    }
    ~occupied() {
      seat** s = &of_.taken;
      while (*s != seat_) s = &(*s)->next;
      *s = seat_->next;
      seat_->next = std::exchange(of_.free, seat_);
    }
    occupied(const occupied&) = delete;
    occupied& operator=(const occupied&) = delete;
    std::condition_variable& changed() const { return seat_->changed; }

   private:
    bucket& of_;
    seat* const seat_;
  };

  bucket& of(const task_record& t) { return buckets_[(reinterpret_cast<std::uintptr_t>(&t) >> 8) % buckets_.size()]; }
  std::array<bucket, 16> buckets_;
};

}  // namespace troupe::detail
