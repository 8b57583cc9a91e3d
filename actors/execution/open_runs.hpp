// What this file is for: the runs of recorded graphs that threads without work may join, for all core groups.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "actors/execution/graph_run.hpp"
#include "actors/logic/scheduling/scope.hpp"
#include <troupe/detail/spin_lock.hpp>

namespace troupe::detail {

class executor;

/// Runs in progress and the core groups that may take part in each. A run belongs to the group that was given its task;
/// threads of other groups in its scope join where nodes are laid out and they have nothing else to do. Groups are
/// named by their number among the executors. Any thread, after all groups have been added.
class open_runs {
 public:
  /// Adds a group, before any run. Groups come in the order of their numbers, from 0 on.
  void add(executor& group) { groups_.emplace_back(group); }
  /// Returns how many slots the groups in a scope have together.
  std::size_t slots_of(const logic::executor_set& scope) const;

  /// Opens a run for the groups in its scope, of which the owner is one.
  void open(graph_run&, std::uint16_t owner, const logic::executor_set& scope);
  /// Ends that: nobody joins any more.
  void close(graph_run&) noexcept;

  /// True if some run is open for that group. Relaxed: a hint.
  bool any(std::uint16_t group) const { return groups_[group].open.load(std::memory_order_relaxed) != 0; }
  /// True if there are nodes for a thread of that group; `own`: in its own runs. Sequentially consistent, as far as
  /// nodes are laid out.
  bool has_nodes(std::uint16_t group, bool own) const;
  /// Takes part in a run that has nodes for a thread of that group: counts the thread in and gives it a hand, which
  /// names the run. Null: there is none.
  graph_run::hand* join(std::uint16_t group);
  /// Wakes up to so many sleeping threads of other groups that may join the run, if it has nodes for them.
  void call_others(const graph_run&, std::uint16_t group, std::size_t threads);

 private:
  struct alignas(64) group_state {
    explicit group_state(executor& e) : who(&e) {}
    executor* who;
    std::atomic<int> open{0}, own{0};  // runs
  };
  struct entry {
    graph_run* run;
    std::uint16_t owner;
    logic::executor_set scope;
  };
  void count(const entry&, int change);

  std::deque<group_state> groups_;
  mutable spin_lock lock_;  // guards entries_
  std::vector<entry> entries_;
};

}  // namespace troupe::detail
