// What this file is for: ready tasks that wait for a scarce quantity, and which of them is next.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/scheduling/device_pool.hpp"
#include "actors/logic/scheduling/ready_queue.hpp"
#include "actors/logic/scheduling/resources.hpp"
#include "actors/logic/scheduling/scope.hpp"

namespace troupe::logic {

/// Queue of the ready tasks that ask for resources; owned by placement. All such tasks pass through it, so that
/// priority decides and not the order of arrival; equal priorities go in the order in which they became ready. A task
/// that wants more than is free has a reservation, and later tasks pass it if they are predicted to have ended by then:
/// see reservation, which is the same for names, devices and slots of cores. A quantity belongs to one node: a task
/// gets it where the largest part of it is left, here if that is the same, and runs there. Other owners may ask the
/// same node for it, so that node has the last word.
///
/// Tasks of one kernel that ask for the same wait in one line, of which only the first is looked at: the cost of a
/// round depends on the number of different requests that wait, not on the number of tasks.
class admission {
 public:
  /// `patience` (how long a request waits for a whole card, see device_pool) and `guess` (for tasks of unknown duration
  /// that may pass, see reservation) are in the unit of the times below.
  explicit admission(const std::vector<resource>& configured, std::uint64_t patience = 0, std::uint64_t guess = 0)
      : resources_(configured, guess), devices_(patience, guess), guess_(guess) {}
  /// Adds a device; to be called before the first task.
  void add_device(const held_device& d, std::uint16_t card) { devices_.add(d, card); }
  /// Adds a node with its own quantities, or removes it. Quantities that tasks held on a removed node are forgotten.
  void add_node(std::uint16_t executor, const std::vector<resource>& has);
  void remove_node(std::uint16_t executor);

  /// Throws `error(no_resource)` if neither this node nor one that is connected could meet the request. Any thread.
  void check(const std::vector<resource>& request) const;
  /// Returns what is free on this node.
  std::vector<resource> free() const {
    std::vector<resource> all = resources_.free();
    if (devices_.size() != 0) all.push_back({"gpu", static_cast<double>(devices_.free())});
    return all;
  }

  static bool concerns(const detail::task_record& t) { return t.extra && !t.extra->options.resources.empty(); }
  /// True if the task holds something of another node, and so can run nowhere else.
  static bool holds_elsewhere(const detail::task_record& t) {
    return (t.marks & detail::mark_holds_resources) && t.extra->holds_at < detail::holds_here;
  }
  /// True if `holder` has something of this node without which `other`, which has not begun, cannot begin.
  bool excludes(const detail::task_record& holder, const detail::task_record& other) const;
  /// Adds those among the first tasks of each line that `holder` excludes.
  void add_excluded(const detail::task_record& holder, std::vector<detail::task_record*>& to);
  void queue(detail::task_record& t);
  /// Nodes on which a task may run: this one, which others, and on which of these for now.
  struct eligible_nodes {
    bool here = true;
    executor_set nodes, open;
  };
  /// True if the resources that the task asks for exist on one of these nodes, held or not.
  bool could_have(const detail::task_record& t, const eligible_nodes& p) const {
    return !concerns(t) || exists(t, narrowed(t, p));
  }
  /// Calls `start(task)` for each task that can have what it asks for, in order. Others are passed over, so that one
  /// scarce resource does not hold up the rest. `where(task)` returns its nodes; `refuse(task)` is called for a task
  /// whose request does not exist in any of them; `lasts(task)` returns its predicted duration, and `bring(task,
  /// device)` the bytes of its data that are not on the device.
  template <class Where, class Start, class Refuse, class Lasts, class Bring>
  void admit(std::uint64_t now, Where&& where, Start&& start, Refuse&& refuse, Lasts&& lasts, Bring&& bring) {
    if (!changed_) return;
    changed_ = false;
    due_ = 0;
    begin_round();
    std::vector<line*> open;
    for (line& l : lines_)
      if (l.tasks.front()) open.push_back(&l);
    const auto later = [](line* a, line* b) { return b->tasks.front()->comes_before(*a->tasks.front()); };
    std::ranges::make_heap(open, later);
    while (!open.empty()) {
      std::ranges::pop_heap(open, later);
      line& l = *open.back();
      detail::task_record& t = *l.tasks.front()->task;
      const bool over = is_over(t);
      eligible_nodes p;
      if (!over) p = narrowed(t, where(t));
      const bring_bytes bring_to = [&](const held_device& d) { return bring(t, d); };
      if (over || take(t, p, now, lasts(t), bring_to)) {
        l.tasks.pop();
        start(t);
      } else if (!exists(t, p)) {
        l.tasks.pop();
        refuse(t);
      } else {
        keep_for(t, p, now);
        std::vector<detail::task_record*> ended;
        l.tasks.take_first(
            swept_max, [](const entry& e) { return is_over(*e.task); },
            [&](const entry& e) { ended.push_back(e.task); });
        for (detail::task_record* e : ended) start(*e);
        open.pop_back();
        continue;
      }
      if (l.tasks.front())
        std::ranges::push_heap(open, later);
      else
        open.pop_back();
    }
    if (lines_.size() > lines_kept) std::erase_if(lines_, [](const line& l) { return l.tasks.empty(); });
  }
  template <class Where, class Start, class Refuse>
  void admit(std::uint64_t now, Where&& where, Start&& start, Refuse&& refuse) {
    admit(
        now, where, start, refuse, [](const detail::task_record&) { return reservation::unknown; },
        [](const detail::task_record&, const held_device&) { return std::uint64_t{0}; });
  }
  /// Frees what the task held: it has ended, or is to be admitted anew.
  void finished(detail::task_record&);
  /// True if something changed since the last `admit`; otherwise `admit` does nothing, and `due` stays as it is.
  bool has_changed() const { return changed_; }
  /// Returns the time to call `admit` again although no task has ended; 0: there is no need to.
  std::uint64_t due() const {
    const std::uint64_t d = devices_.due();
    return due_ == 0 || d == 0 ? std::max(due_, d) : std::min(due_, d);
  }
  void look_again() { changed_ = true; }
  template <class F>
  void drop_queued(F&& f) {
    for (line& l : lines_)
      while (const entry e = l.tasks.pop()) f(*e.task);
    lines_.clear();
  }

 private:
  // True if the task has been cancelled: it needs nothing any more.
  static bool is_over(const detail::task_record& t) {
    return (t.phase.load(std::memory_order_acquire) & detail::phase_mask) != detail::phase_waiting;
  }
  eligible_nodes narrowed(const detail::task_record&, eligible_nodes) const;
  using bring_bytes = std::function<std::uint64_t(const held_device&)>;
  bool excludes(const detail::task_record& holder, const std::vector<resource>& asks) const;
  void begin_round();
  bool take(detail::task_record&, const eligible_nodes&, std::uint64_t now, std::uint64_t lasts, const bring_bytes&);
  bool take_somewhere(detail::task_record&, const eligible_nodes&, std::uint64_t now, std::uint64_t lasts);
  bool exists(const detail::task_record&, const eligible_nodes&) const;
  void keep_for(detail::task_record&, const eligible_nodes&, std::uint64_t now);
  void give_back(detail::task_record&);

  struct node_pool {
    std::uint16_t executor;
    resources has;
  };
  node_pool* pool_of(std::uint16_t executor);

  struct entry {
    detail::task_record* task = nullptr;
    int priority = 0;
    std::uint64_t turn = 0;
    explicit operator bool() const { return task != nullptr; }
    bool comes_before(const entry& o) const { return priority != o.priority ? priority > o.priority : turn < o.turn; }
  };
  struct line {
    const detail::kernel_info* kernel;
    std::vector<resource> asks;
    executor_set executors;
    ready_queue<entry> tasks;
  };
  // Number of tasks that are searched for cancelled ones in a line whose first task waits.
  static constexpr std::size_t swept_max = 256;
  // Number of tasks of a line that are looked at for one that waits for what comes after them.
  static constexpr std::size_t excluded_max = 1024;
  // Number of lines that are kept when they are empty.
  static constexpr std::size_t lines_kept = 32;

  resources resources_;
  device_pool devices_;
  const std::uint64_t guess_;
  mutable std::mutex nodes_lock_;  // for threads that call check() without placement's turn
  std::vector<node_pool> nodes_;   // nodes that have any quantities
  std::deque<line> lines_;         // a deque: lines may be added while tasks are started
  std::uint64_t turns_ = 0, due_ = 0;
  bool changed_ = false;
};

}  // namespace troupe::logic
