// What this file is for: ready tasks that wait for a scarce quantity, and who of them is next.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/device_pool.hpp"
#include "actors/logic/ready_queue.hpp"
#include "actors/logic/resources.hpp"
#include "actors/logic/scope.hpp"

namespace troupe::logic {

/// Owned by placement. Tasks that ask for resources all pass through one queue, so that priority decides and not the order
/// of arrival. A quantity is each node's own: who asks for it gets it where the largest part of it is left, here if that is
/// the same, and runs there. Other owners may ask the same node for it, so it has the last word itself.
class admission {
 public:
  /// `patience`: for a whole card, in the unit of the times below; see device_pool.
  explicit admission(const std::vector<resource>& configured, std::uint64_t patience = 0)
      : resources_(configured), devices_(patience) {}
  /// Before the first task.
  void add_device(const held_device& d, std::uint16_t card) { devices_.add(d, card); }
  /// A node is there, or gone: what it has of its own. What tasks held of one that is gone is nobody's.
  void add_node(std::uint16_t executor, const std::vector<resource>& has);
  void remove_node(std::uint16_t executor);

  /// Any thread: throws `error(no_resource)` if the request could not be met here, nor by a node that is there.
  void check(const std::vector<resource>& request) const;
  /// Of this node.
  std::vector<resource> free() const {
    std::vector<resource> all = resources_.free();
    if (devices_.size() != 0) all.push_back({"gpu", static_cast<double>(devices_.free())});
    return all;
  }

  static bool concerns(const detail::task_record& t) { return t.extra && !t.extra->options.resources.empty(); }
  /// It holds something of a node's, and can run nowhere else.
  static bool holds_elsewhere(const detail::task_record& t) {
    return (t.marks & detail::mark_holds_resources) && t.extra->holds_at < detail::holds_here;
  }
  void queue(detail::task_record& t) {
    waiting_.push(&t, t.extra->options.priority);
    changed_ = true;
  }
  /// Where a task may run: on this node, on which others, and on which of them for now.
  struct places {
    bool here = true;
    executor_set nodes, open;
  };
  /// Calls `start(task)` for each that can have what it asks for, in order. Others are passed over, so that one scarce
  /// thing does not hold up the rest. `where(task)` gives its places, `refuse(task)` is called where it could not be had
  /// in any of them.
  template <class Where, class Start, class Refuse>
  void admit(std::uint64_t now, Where&& where, Start&& start, Refuse&& refuse) {
    if (!changed_) return;
    changed_ = false;
    devices_.begin_round();
    constexpr std::size_t passed_over_max = 256;
    std::array<detail::task_record*, passed_over_max> passed;
    std::size_t n = 0;
    while (n < passed_over_max) {
      detail::task_record* t = waiting_.pop();
      if (!t) break;
      if (is_over(*t)) {
        start(*t);
        continue;
      }
      const places p = narrowed(*t, where(*t));
      if (take(*t, p, now))
        start(*t);
      else if (!exists(*t, p))
        refuse(*t);
      else
        passed[n++] = t;
    }
    while (n != 0) {
      detail::task_record* t = passed[--n];
      waiting_.push_front(t, t->extra->options.priority);
    }
  }
  /// The task has ended, or is to be admitted anew: what it held is free.
  void finished(detail::task_record&);
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
  places narrowed(const detail::task_record&, places) const;
  bool take(detail::task_record&, const places&, std::uint64_t now);
  bool take_somewhere(detail::task_record&, const places&);
  bool exists(const detail::task_record&, const places&) const;

  struct node_pool {
    std::uint16_t executor;
    resources has;
  };
  node_pool* pool_of(std::uint16_t executor);

  resources resources_;
  device_pool devices_;
  mutable std::mutex nodes_lock_;  // for those that ask without the turn what there is
  std::vector<node_pool> nodes_;   // that have something
  ready_queue<detail::task_record*> waiting_;
  bool changed_ = false;
};

}  // namespace troupe::logic
