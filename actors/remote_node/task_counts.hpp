// What this file is for: what the nodes in one place have done, as reports show it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <troupe/report.hpp>

namespace troupe::detail {

/// Counts bodies, time and bytes, of the node that is there (or was the last) apart from those before it.
///
/// A part of a node's actor. Any thread may count and read, whatever locks it holds; join() only with the actor's lock.
class task_counts {
 public:
  /// Notes that so many bodies have run, `failed` of which have thrown or were lost.
  void add_bodies(std::uint64_t ran, std::uint64_t failed) {
    now_.tasks.fetch_add(ran, std::memory_order_relaxed);
    if (failed != 0) now_.failed.fetch_add(failed, std::memory_order_relaxed);
  }
  void add_behind() { now_.behind.fetch_add(1, std::memory_order_relaxed); }
  void add_busy(float ns) { now_.busy_ns.fetch_add(static_cast<std::uint64_t>(ns), std::memory_order_relaxed); }
  void add_bytes_in(std::uint64_t n) { now_.bytes_in.fetch_add(n, std::memory_order_relaxed); }
  void add_bytes_out(std::uint64_t n) { now_.bytes_out.fetch_add(n, std::memory_order_relaxed); }
  /// Another node has joined in this place: what was counted so far is of those before.
  void join() {
    gone_.each_with(now_, [](auto& all, auto& last) { all.fetch_add(last.exchange(0)); });
  }
  /// Adds what the node that is there, or was the last, has done.
  void add_to(executor_report& r) const { now_.add_to(r); }
  /// Adds what the nodes before the last have done; also what the last has, if it is not there any more.
  void add_gone_to(executor_report& r, bool is_there) const {
    gone_.add_to(r);
    if (!is_there) now_.add_to(r);
  }

 private:
  struct counters {
    std::atomic<std::uint64_t> tasks{0}, failed{0}, behind{0}, busy_ns{0}, bytes_in{0}, bytes_out{0};
    template <class F>
    void each_with(counters& o, F&& f) {
      f(tasks, o.tasks), f(failed, o.failed), f(behind, o.behind);
      f(busy_ns, o.busy_ns), f(bytes_in, o.bytes_in), f(bytes_out, o.bytes_out);
    }
    void add_to(executor_report& r) const {
      r.tasks += tasks.load(std::memory_order_relaxed);
      r.failed += failed.load(std::memory_order_relaxed);
      r.chained += behind.load(std::memory_order_relaxed);
      r.busy += std::chrono::nanoseconds(busy_ns.load(std::memory_order_relaxed));
      r.bytes_out += bytes_in.load(std::memory_order_relaxed);
      r.bytes_moved += bytes_in.load(std::memory_order_relaxed) + bytes_out.load(std::memory_order_relaxed);
    }
  };
  counters now_, gone_;
};

}  // namespace troupe::detail
