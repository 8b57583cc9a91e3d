// What this file is for: tasks that follow one another on a device without a wait in between.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/logic/data/directory.hpp"
#include "actors/logic/data/task_graph.hpp"
#include "actors/logic/scheduling/assignment.hpp"
#include "actors/placement/crossings.hpp"
#include "actors/placement/gangs.hpp"

namespace troupe::detail {

class executor;
class host_memory;
class notifications;

/// When a device is handed a task, each of its successors counts it as ahead. A successor all of whose unfinished
/// predecessors are ahead on one device may be handed over at once: the device orders both by their data. See
/// protocol/chaining.hpp for what happens when one of them fails.
///
/// A part of placement; with the turn only. It decides and marks; tasks that are sent behind others become outgoing
/// tasks of logic::assignment, as all others do.
class chains {
 public:
  /// Needs of others: the edges between tasks, the queues of tasks to be sent, the executors by their number
  /// (both kept up to date by the owner), who is told something in this turn, which parts of runs may go, and room in
  /// host memory, if that is bounded.
  chains(logic::task_graph& graph, logic::assignment& a, const std::vector<executor*>& executors, notifications& told,
         gangs& runs, host_memory* memory)
      : graph_(graph),
        assignment_(a),
        executors_(executors),
        told_(told),
        gangs_(runs),
        host_memory_(memory),
        crossings_(a) {}

  /// Counts an executor that was added. `has_memory`: tasks may be chained there.
  void add(bool has_memory);
  /// Notes whether messages to a node and back take long.
  void note_far(std::size_t executor, bool is) { crossings_.note_far(executor, is); }
  /// Sends nothing behind others from now on: the runtime ends.
  void stop() { stopped_ = true; }

  // ---- a task is ordered --------------------------------------------------------------------------------------------
  /// The edges that were found since the last look, those of the task that has just been ordered among them.
  std::span<const logic::task_graph::edge> found() const { return predecessors_; }
  /// Counts the predecessors of a task that has just been ordered and that a device has.
  void note_ordered(task_record&);
  /// Forgets the edges that were found since: of internal tasks, which do not count as ahead.
  void forget_edges() { predecessors_.clear(); }

  // ---- tasks are sent -----------------------------------------------------------------------------------------------
  /// Marks the outgoing tasks of a device, which are about to be handed over, and assigns successors behind them.
  void hand_over(std::size_t executor);
  /// Assigns a task to the device that has all its unfinished predecessors, or to one of the nodes that have them, to
  /// run after them; false if it may not or there is no room.
  bool send_behind(task_record&);
  /// Notes a task one of whose predecessors has just ended: it may have waited for that one only, beside those of a
  /// device.
  void note_fewer(task_record& t) {
    if (!(t.marks & (mark_sent | mark_early)) && (has_all_here(t) || crossings_.has_all(t))) fewer_.push_back(&t);
  }
  /// Sends those behind what they still wait for, now that this predecessor is not among the unfinished tasks any more.
  void send_fewer() {
    for (task_record* t : fewer_)
      if ((t->phase.load(std::memory_order_relaxed) & phase_mask) == phase_waiting) send_behind(*t);
    fewer_.clear();
  }
  /// Sends those that could not be sent while this task, which retires, was to write what they overwrite.
  void send_blocked_by(const task_record& t) {
    for (const task_ref& r : crossings_.take_blocked(t))
      if (graph_.alive(r) && (r.task->phase.load(std::memory_order_relaxed) & phase_mask) == phase_waiting)
        send_behind(*r.task);
  }
  /// True if tasks can be sent that had to wait for parts of runs to be given to their nodes; then, sends them.
  bool has_postponed() const { return !postponed_.empty() && !gangs_.has_to_give(); }
  void send_postponed();
  /// Does so with all successors of a task that its device has.
  void send_successors(task_record& t) {
    graph_.each_successor(t, [&](task_record& next, bool) { send_behind(next); });
  }
  /// Assigns the tasks that were held back because a device had enough, if it soon runs dry.
  void send_held_back(std::size_t executor);
  /// Returns the first executor from `from` on that has tasks held back, or logic::executor_set::end.
  int next_holding_back(int from) const { return holding_back_.next(static_cast<std::size_t>(from)); }

  // ---- a task ends or comes back ------------------------------------------------------------------------------------
  /// True if a task has ended before the tasks that it was sent behind: it retires after them.
  bool has_ended_early(task_record&);
  /// A tile that was lost with its node after a task which wrote it there had ended, and before that retires.
  struct lost_tile {
    array_core* array;
    std::uint32_t tile;
    std::exception_ptr why;
  };
  /// Notes tiles that are lost with an executor, for tasks that have ended there before those they come after.
  void note_lost(std::size_t executor, std::span<const std::pair<array_core*, std::uint32_t>>,
                 const std::exception_ptr& why);
  /// Notes that a task which has been handed over retires, or was returned.
  void note_not_handed(const task_record&);
  /// Returns the tiles that were noted as lost of a task which retires.
  std::vector<lost_tile> take_lost(const task_record& t) {
    return ended_early_.empty() ? std::vector<lost_tile>() : take_lost_of(t);
  }
  /// Takes a task that its device has returned out of its chain. `counts`: as a setback; false only for tasks that
  /// nothing was sent behind.
  void note_returned(task_record&, bool counts);
  /// Sends no other task behind this one from now on: its node is asked for it, so that it may come back though nothing
  /// has failed.
  void lead_no_more(task_record&);
  /// True if no task was sent behind this one.
  bool leads_nobody(task_record&);
  /// Calls f(executor, array, tile) for nodes that have been given tasks which come after this one, which has come back,
  /// and for the tiles that they write and it touches: what is there is not what it is to find.
  template <class F>
  void each_that_went_on(const task_record& t, F&& f) {
    if (!crossings_.are_any()) return;
    for (int i = 0; i < t.access_count; ++i) {
      const access& x = t.accesses[i];
      if (!x.array || !x.array->coherence) continue;
      logic::each_tile_of(x, [&](std::uint32_t tile) {
        for (const task_ref& r : x.array->coherence->tiles[tile].handed)
          if (number_of(r.sequence) > number_of(t.sequence)) f(*executors_[r.task->executor], *x.array, tile);
      });
    }
  }

 private:
  static bool has_all_here(const task_record& t) { return t.ahead > 0 && t.ahead == t.pending; }
  bool waits_for_tasks(const task_record&) const;
  bool has_nothing_in_the_way(task_record&, std::size_t executor, const std::vector<promise>&);
  bool make_promises(task_record&);
  bool is_written_elsewhere(const task_record&, std::size_t executor) const;
  void note_handed(task_record&);
  void count_ahead(task_record& first, task_record& next, bool data);
  void count_not_ahead(task_record& first);
  bool follows_here(const task_record& first, const task_record& next) const;
  bool follows_surely(task_record& first, const task_record& next, bool data);
  void advance_epoch(const task_record&);
  std::vector<lost_tile> take_lost_of(const task_record&);

  logic::task_graph& graph_;
  logic::assignment& assignment_;
  const std::vector<executor*>& executors_;
  notifications& told_;
  gangs& gangs_;
  host_memory* const host_memory_;
  crossings crossings_;
  std::vector<std::uint32_t> failure_epochs_;     // of each executor, counted for devices; see protocol/chaining.hpp
  std::vector<std::vector<task_ref>> held_back_;  // by device: tasks that may be sent behind others once it runs low
  std::vector<task_ref> postponed_;
  logic::executor_set holding_back_;                   // the devices with entries in held_back_
  std::vector<logic::task_graph::edge> predecessors_;  // edges found since the last look
  // Tasks on nodes that have ended before what they come after, on another node; what is lost of their outputs.
  std::unordered_map<const task_record*, std::vector<lost_tile>> ended_early_;
  std::vector<task_record*> fewer_;  // of the task that retires now
  bool stopped_ = false;
};

}  // namespace troupe::detail
