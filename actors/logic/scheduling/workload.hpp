// What this file is for: what each executor has been given and not finished, and what is to be handed to it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by assignment, which chooses; here is only counting. So an executor's queue, its room, and each
// listener's part of its work are the same for all callers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <troupe/detail/id_set.hpp>
#include <troupe/detail/task.hpp>

#include "actors/logic/scheduling/resources.hpp"

namespace troupe::logic {

class workload {
 public:
  /// Number of tasks, and their predicted time.
  struct load {
    std::uint64_t tasks = 0;
    float ns = 0;
  };

  explicit workload(float window_ns) : window_ns_(window_ns) {}

  /// Adds an executor; its id is the number of those added before.
  void add(int slots, device_kind);
  std::size_t size() const { return executors_.size(); }
  /// Resets executor i, with so many slots.
  void restart(std::size_t i, int slots) {
    executors_[i].slots = slots;
    executors_[i].others_ns = 0;
    note_room(i);
  }
  void know_others(std::size_t i, float ns) { executors_[i].others_ns = ns; }
  /// Notes that waiting bodies have left so many slots of executor i, and were predicted to take so long.
  void know_waiting(std::size_t i, int slots, float ns) {
    executors_[i].waiting = slots;
    executors_[i].waiting_ns = ns;
    note_room(i);
  }
  /// Notes how many tasks executor i has beside those that it was given, one slot each, and their predicted time. Early
  /// tasks that are or will be put out are added, and count until this is called the next time.
  void know_unplaced(std::size_t i, int tasks, float ns) {
    executor_load& p = executors_[i];
    p.unplaced = tasks;
    p.unplaced_ns = ns;
    for (const detail::task_record* t : p.outgoing) count_early(p, *t);
    note_room(i);
  }

  // ---- events -------------------------------------------------------------------------------------------------------
  /// Gives the task to executor i, where it is predicted to take so long, and its data so long to arrive.
  void give(detail::task_record&, std::size_t i, float predicted_ns, float transfer_ns = 0);
  /// Removes a task from its executor's load, when it has finished or was returned.
  void take_off(detail::task_record&);
  /// Adds the task's measured time to the sums, beside the predicted one, if its kernel was known.
  void note_measured(const detail::task_record&);

  /// Marks a task as waiting for its data: until it resumes, its slot may be given to another task.
  void set_aside(detail::task_record&);
  /// Hands over a task whose data has arrived.
  void resume(detail::task_record&);

  // ---- tasks to hand over -------------------------------------------------------------------------------------------
  void put_out(detail::task_record& t) {
    executor_load& p = executors_[t.executor];
    p.outgoing.push_back(&t);
    outgoing_.insert(t.executor);
    if (executors_.size() > 1 && count_early(p, t)) note_room(t.executor);
  }
  /// Returns the tasks to be handed to executor i; the caller that empties the list calls `sent`.
  std::vector<detail::task_record*>& outgoing(std::size_t i) { return executors_[i].outgoing; }
  void sent(std::size_t i) {
    executors_[i].outgoing.clear();
    outgoing_.erase(i);
  }
  /// Returns the first executor from this one on that may have outgoing tasks; id_set::end if there is none.
  int next_outgoing(int from) const { return outgoing_.next(static_cast<std::size_t>(from)); }
  bool something_outgoing() const {
    for (int i = next_outgoing(0); i != detail::id_set::end; i = next_outgoing(i + 1))
      if (!executors_[static_cast<std::size_t>(i)].outgoing.empty()) return true;
    return false;
  }

  // ---- load ---------------------------------------------------------------------------------------------------------
  /// Time until a slot is free.
  float queue_ns(std::size_t i) const {
    const executor_load& p = executors_[i];
    return counted(p) < p.slots
               ? 0
               : std::max(p.outstanding_ns + p.unplaced_ns - p.waiting_ns, 0.0f) / static_cast<float>(p.slots);
  }
  /// Predicted time of all tasks that the executor has.
  float outstanding_ns(std::size_t i) const { return executors_[i].outstanding_ns; }
  /// Time of the copies for these.
  float moving_ns(std::size_t i) const { return executors_[i].moving_ns; }
  /// Predicted time of what other owners have given a node.
  float others_ns(std::size_t i) const { return executors_[i].others_ns; }
  int slots(std::size_t i) const { return executors_[i].slots; }
  /// Number of tasks that the executor has been given and not finished.
  int under_way(std::size_t i) const { return executors_[i].under_way; }
  /// Number of these whose time is a guess.
  int tries(std::size_t i) const { return executors_[i].tries; }
  /// Executors that may be given more; a node may have the next task of each slot while one runs.
  const detail::id_set& roomy() const { return roomy_; }
  /// Executors with a slot for which there is no task.
  const detail::id_set& free() const { return free_; }
  /// Load of executors that are not nodes.
  load given() const;
  /// Returns the part of it that tasks with this listener make up; tasks from other nodes have one.
  load given(const detail::task_listener* l) const {
    const auto found = of_listeners_.find(l);
    return found == of_listeners_.end() ? load() : found->second;
  }
  /// Sum over tasks whose kernels were known: predicted, to compare with measured.
  double predicted_ns(std::size_t i) const { return executors_[i].predicted_ns; }
  double measured_ns(std::size_t i) const { return executors_[i].measured_ns; }

 private:
  struct executor_load {
    float outstanding_ns = 0;
    float moving_ns = 0;
    float others_ns = 0;
    float waiting_ns = 0;  // part of outstanding_ns
    float unplaced_ns = 0;
    int under_way = 0;  // tasks
    int taken = 0;      // slots that they need
    int waiting = 0;    // of these, slots that bodies have left while they wait
    int aside = 0;      // tasks that wait for their data
    int unplaced = 0;   // tasks that it was not given
    int slots = 1;
    int tries = 0;
    device_kind kind = device_kind::cpu;
    std::vector<detail::task_record*> outgoing;
    double predicted_ns = 0, measured_ns = 0;
  };

  void end_wait(detail::task_record&);
  // Counts a task that nobody has given to the executor; false: it is none.
  static bool count_early(executor_load& p, const detail::task_record& t) {
    if (!(t.marks & detail::mark_early)) return false;
    ++p.unplaced;
    p.unplaced_ns += t.predicted_ns;
    return true;
  }

  // Returns the slots that are used or spoken for. Of tasks that wait for their data, two for each slot are not
  // counted: other tasks have their slots meanwhile.
  static int counted(const executor_load& p) {
    return p.taken + p.unplaced - p.waiting - std::min(p.aside, 2 * p.slots);
  }
  // Returns the slots that the task takes there: a core group's tasks may need several, or none; a device's and a
  // node's need one.
  static int slots_on(const executor_load& p, const detail::task_record& t) {
    return p.kind == device_kind::cpu ? slots_needed(t) : 1;
  }

  // Updates whether executor i has room. A node is given the next task of each slot while one runs, however long that
  // takes: else it would be idle from the end of each until the report has come here and the next task with its data
  // has gone there.
  void note_room(std::size_t i) {
    if (executors_.size() == 1 && executors_[0].kind == device_kind::cpu) return;  // nobody asks
    const executor_load& p = executors_[i];
    free_.set(i, counted(p) < p.slots);
    roomy_.set(i, queue_ns(i) <= window_ns_ || (p.kind == device_kind::node && counted(p) < 2 * p.slots));
  }

  const float window_ns_;
  std::vector<executor_load> executors_;
  detail::id_set roomy_, free_;
  detail::id_set outgoing_;  // may have something outgoing
  std::unordered_map<const detail::task_listener*, load> of_listeners_;
};

}  // namespace troupe::logic
