// What this file is for: the runs of recorded graphs that threads without work may join, for all core groups.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <vector>

#include "actors/execution/graph_run.hpp"
#include "actors/logic/scheduling/scope.hpp"
#include "actors/protocol/executor.hpp"
#include "actors/protocol/spin_lock.hpp"

namespace troupe::detail {

/// Runs in progress and the core groups that may take part in each. A run belongs to the group that was given its task;
/// threads of other groups in its scope join where nodes are laid out and they have nothing else to do. Any thread, after
/// all groups have been added.
class open_runs {
 public:
  /// A group's place in the list: what its threads name when they ask.
  using seat = std::size_t;

  /// Adds a group, before any run.
  seat add(executor& group);

  /// Opens a run of the group in that seat for all groups of `who`.
  void open(graph_run&, seat owner, const logic::executor_set& who);
  /// Ends that: nobody joins any more.
  void close(graph_run&) noexcept;

  /// Slots of all groups among these.
  std::size_t slots_of(const logic::executor_set& who) const;
  /// True if some run is open for that group. Relaxed: a hint.
  bool any(seat s) const { return seats_[s].open.load(std::memory_order_relaxed) != 0; }
  /// True if there are nodes for a thread of that group; `own`: in its own runs. Sequentially consistent, as far as nodes
  /// are laid out.
  bool has_nodes(seat s, bool own) const;
  /// Takes part in a run that has nodes for a thread of that group: counts the thread in and gives it a hand, which names
  /// the run. Null: there is none.
  graph_run::hand* join(seat s);
  /// Wakes up to so many sleeping threads of other groups that may join the run.
  void call_others(const graph_run&, seat s, std::size_t threads);

 private:
  struct alignas(64) group {
    explicit group(executor& e) : who(&e) {}
    executor* who;
    std::atomic<int> open{0}, own{0};  // runs
  };
  struct entry {
    graph_run* run;
    seat owner;
    std::vector<bool> for_seat;
  };

  std::deque<group> seats_;
  mutable spin_lock lock_;  // guards entries_
  std::vector<entry> entries_;
};

}  // namespace troupe::detail
