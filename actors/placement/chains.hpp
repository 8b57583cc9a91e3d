// What this file is for: tasks that follow one another on a device without a wait in between.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/logic/data/dependencies.hpp"
#include "actors/logic/scheduling/assignment.hpp"

namespace troupe::detail {

class executor;

class host_memory;

/// When a device is handed a task, each of its successors counts it as ahead. A successor all of whose unfinished
/// predecessors are ahead on one device may be handed over at once: the device orders both by their data. See
/// protocol/chaining.hpp for what happens when one of them fails.
///
/// A part of placement; with the turn only. It decides and marks; tasks that are sent behind others become outgoing
/// tasks of logic::assignment, as all others do.
class chains {
 public:
  /// Needs of others: the edges between tasks, the queues of tasks to be sent, the executors by their number
  /// (both kept up to date by the owner), and room in host memory, if that is bounded.
  chains(logic::dependencies& order, logic::assignment& a, const std::vector<executor*>& executors, host_memory* memory)
      : order_(order), assignment_(a), executors_(executors), host_memory_(memory) {}

  /// Counts an executor that was added. `has_memory`: tasks may be chained there.
  void add(bool has_memory);
  /// Sends nothing behind others from now on: the runtime ends.
  void stop() { stopped_ = true; }

  // ---- a task is ordered --------------------------------------------------------------------------------------------
  /// Counts the predecessors of a task that has just been ordered and that a device has.
  void note_ordered(task_record&);
  /// Forgets the edges that were found since: of internal tasks, which do not count as ahead.
  void forget_edges() { predecessors_.clear(); }

  // ---- tasks are sent -----------------------------------------------------------------------------------------------
  /// Marks the outgoing tasks of a device, which are about to be handed over, and assigns successors behind them.
  void hand_over(std::size_t executor);
  /// Assigns a task to the device that has all its unfinished predecessors, to run after them; false if it may not or
  /// there is no room.
  bool send_behind(task_record&);
  /// Notes a task one of whose predecessors has just ended: it may have waited for that one only, beside those of a
  /// device.
  void note_fewer(task_record& t) {
    if (!(t.marks & (mark_sent | mark_early)) && t.ahead > 0 && t.ahead == t.pending) fewer_.push_back(&t);
  }
  /// Sends those behind what they still wait for, now that this predecessor is not among the unfinished tasks any more.
  void send_fewer() {
    for (task_record* t : fewer_)
      if ((t->phase.load(std::memory_order_relaxed) & phase_mask) == phase_waiting) send_behind(*t);
    fewer_.clear();
  }
  /// Does so with all successors of a task that its device has.
  void send_successors(task_record& t) {
    order_.each_successor(t, [&](task_record& next, bool) { send_behind(next); });
  }
  /// Assigns the tasks that were held back because a device had enough, if it soon runs dry.
  void send_held_back(std::size_t executor);
  /// Returns the first executor from `from` on that has tasks held back, or logic::executor_set::end.
  int next_holding_back(int from) const { return holding_back_.next(static_cast<std::size_t>(from)); }

  // ---- a task ends or comes back ------------------------------------------------------------------------------------
  /// True if a task has ended before the tasks that it was sent behind: it retires after them.
  bool has_ended_early(task_record&);
  /// Takes a task that its device has returned out of its chain. `counts`: as a setback; false only for tasks that
  /// nothing was sent behind.
  void note_returned(task_record&, bool counts);
  /// Sends no other task behind this one from now on: its node is asked for it, so that it may come back though nothing
  /// has failed.
  void lead_no_more(task_record&);
  /// True if no task was sent behind this one.
  bool leads_nobody(task_record&);

 private:
  void count_ahead(task_record& first, task_record& next, bool data);
  void count_not_ahead(task_record& first);
  bool follows_here(const task_record& first, const task_record& next) const;
  bool follows_surely(task_record& first, const task_record& next, bool data);
  void advance_epoch(const task_record&);

  logic::dependencies& order_;
  logic::assignment& assignment_;
  const std::vector<executor*>& executors_;
  host_memory* const host_memory_;
  std::vector<std::uint32_t> failure_epochs_;     // of each executor, counted for devices; see protocol/chaining.hpp
  std::vector<std::vector<task_ref>> held_back_;  // by device: tasks that may be sent behind others once it runs low
  logic::executor_set holding_back_;              // the devices with entries in held_back_
  std::vector<logic::dependencies::dependency> predecessors_;  // edges found since the last look
  std::vector<task_record*> fewer_;                            // of the task that retires now
  bool stopped_ = false;
};

}  // namespace troupe::detail
