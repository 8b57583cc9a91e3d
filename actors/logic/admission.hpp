// What this file is for: ready tasks that wait for a scarce quantity, and who of them is next.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>

#include <troupe/detail/task.hpp>

#include "actors/logic/ready_queue.hpp"
#include "actors/logic/resources.hpp"

namespace troupe::logic {

/// Pure; owned by placement. Tasks that ask for resources all pass through one queue, so that priority decides and not
/// the order of arrival.
class admission {
 public:
  explicit admission(const std::vector<resource>& configured) : resources_(configured) {}

  /// Any thread: throws `error(no_resource)` if the request could never be met.
  void check(const std::vector<resource>& request) const { resources_.check(request); }
  const std::vector<resource>& free() const { return resources_.free(); }

  static bool concerns(const detail::task_record& t) { return t.extra && !t.extra->options.resources.empty(); }
  void queue(detail::task_record& t) {
    waiting_.push(&t, t.extra->options.priority);
    changed_ = true;
  }
  /// Calls `start(task)` for each that can have what it asks for, in order. Others are passed over, so that one scarce
  /// thing does not hold up the rest.
  template <class F>
  void admit(F&& start) {
    if (!changed_) return;
    changed_ = false;
    constexpr std::size_t passed_over_max = 256;
    std::array<detail::task_record*, passed_over_max> passed;
    std::size_t n = 0;
    while (n < passed_over_max) {
      detail::task_record* t = waiting_.pop();
      if (!t) break;
      if (resources_.take(t->extra->options.resources)) {
        t->marks |= detail::mark_holds_resources;
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
    t.marks &= static_cast<std::uint16_t>(~detail::mark_holds_resources);
    changed_ = true;
  }
  template <class F>
  void drop_queued(F&& f) {
    while (detail::task_record* t = waiting_.pop()) f(*t);
  }

 private:
  resources resources_;
  ready_queue<detail::task_record*> waiting_;
  bool changed_ = false;
};

}  // namespace troupe::logic
