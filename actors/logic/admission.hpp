// What this file is for: ready tasks that wait for a scarce quantity, and who of them is next.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/device_pool.hpp"
#include "actors/logic/ready_queue.hpp"
#include "actors/logic/resources.hpp"

namespace troupe::logic {

/// Pure; owned by placement. Tasks that ask for resources all pass through one queue, so that priority decides and not
/// the order of arrival.
class admission {
 public:
  /// `patience`: for a whole card, in the unit of the times below; see device_pool.
  explicit admission(const std::vector<resource>& configured, std::uint64_t patience = 0)
      : resources_(configured), devices_(patience) {}
  /// Before the first task.
  void add_device(const held_device& d, std::uint16_t card) { devices_.add(d, card); }

  /// Any thread: throws `error(no_resource)` if the request could never be met.
  void check(const std::vector<resource>& request) const {
    resources_.check(request);
    devices_.check(request);
  }
  std::vector<resource> free() const {
    std::vector<resource> all = resources_.free();
    if (devices_.size() != 0) all.push_back({"gpu", static_cast<double>(devices_.free())});
    return all;
  }

  static bool concerns(const detail::task_record& t) { return t.extra && !t.extra->options.resources.empty(); }
  void queue(detail::task_record& t) {
    waiting_.push(&t, t.extra->options.priority);
    changed_ = true;
  }
  /// Calls `start(task)` for each that can have what it asks for, in order. Others are passed over, so that one scarce
  /// thing does not hold up the rest.
  template <class F>
  void admit(std::uint64_t now, F&& start) {
    if (!changed_) return;
    changed_ = false;
    devices_.begin_round();
    constexpr std::size_t passed_over_max = 256;
    std::array<detail::task_record*, passed_over_max> passed;
    std::size_t n = 0;
    while (n < passed_over_max) {
      detail::task_record* t = waiting_.pop();
      if (!t) break;
      if (is_over(*t) || take(*t, now)) {
        start(*t);
      } else {
        passed[n++] = t;
      }
    }
    while (n != 0) {
      detail::task_record* t = passed[--n];
      waiting_.push_front(t, t->extra->options.priority);
    }
  }
  /// The task has ended: what it held is free.
  void finished(detail::task_record& t) {
    if (!(t.marks & detail::mark_holds_resources)) return;
    resources_.give(t.extra->options.resources);
    devices_.give(t.extra->devices);
    t.marks &= static_cast<std::uint16_t>(~detail::mark_holds_resources);
    changed_ = true;
  }
  /// When to look again although nothing has ended; 0: no need to.
  std::uint64_t due() const { return devices_.due(); }
  void look_again() { changed_ = true; }
  template <class F>
  void drop_queued(F&& f) {
    while (detail::task_record* t = waiting_.pop()) f(*t);
  }

 private:
  // Cancelled: it needs nothing any more.
  static bool is_over(const detail::task_record& t) {
    return (t.phase.load(std::memory_order_acquire) & detail::phase_mask) != detail::phase_waiting;
  }
  bool take(detail::task_record& t, std::uint64_t now) {
    detail::task_extra& e = *t.extra;
    const std::vector<resource>& request = e.options.resources;
    if (!resources_.take(request)) return false;
    const std::size_t count = devices_.asked(request);
    if (count != 0 && !devices_.take(count, e.waits_since, now, e.devices)) {
      resources_.give(request);
      return false;
    }
    t.marks |= detail::mark_holds_resources;
    return true;
  }

  resources resources_;
  device_pool devices_;
  ready_queue<detail::task_record*> waiting_;
  bool changed_ = false;
};

}  // namespace troupe::logic
