// What this file is for: the parts of a run over several nodes begin together, and in one order on all nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Parts of one run wait for what the others send. A node orders what it is given as it comes: a task that is to find
// more of a tile there than is there waits for those that use the tile. So a part that is begun too early may hold up
// a task on its node that another part of its run waits for. That does not happen if
// - a run is released as a whole, once each of its parts has nothing left to wait for but runs that have been released:
//   no other task is unfinished then that any part waits for;
// - each node is given parts in the order in which their runs were released: what waits there for what came earlier
//   waits for runs that were released earlier, and these end without it. So are the cores here, where parts hold
//   quantities: no run has one that an earlier run waits for;
// - while a part of a released run has yet to be given to its node, no task is sent to a node before what it reads has
//   been made on another one: it might wait for a task there that waits for such a run.
// One hole is left: a part that its node gives back comes behind parts that the node has been given since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/data/task_graph.hpp"

namespace troupe::detail {

/// The tasks of a run of a graph over several nodes, one for each part. Filled in before they are submitted; then
/// `gangs`, a part of placement, has it.
struct run_gang {
  /// For member::node, of parts that run here. In order: those that hold quantities. A part might take one for which
  /// another waits whose run was released earlier.
  static constexpr std::uint16_t no_node = 0xffff, here_in_order = 0;
  struct member {
    task_record* task = nullptr;   // null once it has retired
    std::uint16_t node = no_node;  // the executor, if it is a node, which is the only one that may run the part
    std::uint32_t before = 0;      // its unfinished predecessors that are parts of released runs
    bool is_ordered = false;       // its predecessors are known
    bool is_clear = false;         // it waits for nothing but released runs
    bool waits = false;            // it is ready, and kept here
    bool is_given = false;         // its node has been given it
  };
  std::vector<member> members;
  std::size_t clear = 0;     // members
  std::uint64_t number = 0;  // in the order in which runs were released; 0: it has not been

  bool is_released() const { return number != 0; }

  /// Adds a part that has not been submitted.
  void add(task_record& t, std::uint16_t node) { members.push_back({.task = &t, .node = node}); }
};

/// The runs that have not been given to their nodes. A part of placement; with the turn only.
class gangs {
 public:
  /// `graph`: the edges between tasks.
  explicit gangs(logic::task_graph& graph) : graph_(graph) {}

  /// True if the task is a part of such a run.
  static bool is_part(const task_record& t) { return t.extra && t.extra->gang; }

  /// Counts a task that has just been ordered, whose own submission is still among what it waits for. `found`: edges,
  /// among which are all that lead to it. The run is released if it was the last part.
  void ordered(task_record& t, std::span<const logic::task_graph::edge> found) {
    if (is_part(t)) part_ordered(t, found);
  }
  /// True if the task may be given to an executor. If not and `is_ready` the part is kept here, and is due later.
  bool may_go(task_record& t, bool is_ready) { return !is_part(t) || part_may_go(t, is_ready); }
  /// Notes that a task has its data, and is given to its executor next.
  void given(task_record& t) {
    if (is_part(t)) part_given(t);
  }
  /// Notes that a task which was given to an executor has come back without having run.
  void came_back(task_record& t) {
    if (is_part(t)) part_came_back(t);
  }
  /// True if a part of a released run has yet to be given to its node.
  bool has_to_give() const { return in_lines_ != 0; }
  /// Notes that one of those that the task waits for is not unfinished any more.
  void waits_for_fewer(task_record& t) {
    if (is_part(t)) part_waits_for_fewer(t);
  }
  /// Notes that a task retires, whose successors have not been released yet.
  void retires(task_record& t) {
    if (is_part(t)) part_retires(t);
  }

  /// True if parts may go that could not before.
  bool has_due() const { return !due_.empty(); }
  /// A part that may go now. `is_ready`: it was kept here; else it waits for others, and may be sent behind these.
  struct due {
    task_record* part;
    bool is_ready;
  };
  due take_due();
  /// Adds the parts that cannot go before `t` does, though no edge leads from it to them: those of its run, if it has
  /// not been released and `t` waits for `before`; else, if these are the same, the next one that its node is given.
  void add_kept_behind(const task_record& before, const task_record& t, std::vector<task_record*>& to) const;
  /// Gives up all parts that are kept here, with a call of give_up(part): the runtime ends.
  template <class F>
  void drop_kept(F&& give_up) {
    std::vector<task_record*> all;
    all.swap(kept_);
    due_.clear();
    for (task_record* t : all) {
      of(*t).waits = false;
      give_up(*t);
    }
  }

 private:
  // Returns the member of a task that is a part.
  static run_gang::member& of(const task_record&);
  static bool is_released(const task_record& part) { return part.extra->gang->is_released(); }
  void part_ordered(task_record&, std::span<const logic::task_graph::edge> found);
  bool part_may_go(task_record&, bool is_ready);
  void part_given(task_record&);
  void part_came_back(task_record&);
  void part_waits_for_fewer(task_record&);
  void part_retires(task_record&);
  bool is_next(const run_gang::member&) const;
  std::deque<task_record*>& line(std::uint16_t node);
  void clear_if(run_gang&, run_gang::member&, std::int32_t pending);
  void release(run_gang&);
  void leave_line(run_gang::member&);
  void is_due(task_record&);

  logic::task_graph& graph_;
  // By executor, parts of released runs that the node has not been given, in order.
  std::vector<std::deque<task_record*>> lines_;
  std::size_t in_lines_ = 0;  // for nodes
  std::uint64_t released_ = 0;
  std::vector<task_record*> kept_;  // ready parts that wait here
  std::deque<task_record*> due_;
  std::vector<run_gang*> clearing_;  // runs that are being released
};

}  // namespace troupe::detail
