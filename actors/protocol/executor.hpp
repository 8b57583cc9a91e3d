// What this file is for: the protocol that every executor answers: core groups, GPUs and remote nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Placement -> executor: run_tasks, run_released, after_turn, save, wake_one, keep_watch, take_back, recall. Executor
// -> placement: placement::report_done, report_returned; an executor that runs dry looks for placement's mail. None of
// these blocks but start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <troupe/detail/task.hpp>
#include <troupe/report.hpp>

#include "actors/protocol/executor_facts.hpp"

namespace troupe::detail {

struct promise;

/// Bodies that wait for something, whose slots other tasks have meanwhile.
struct waiting_load {
  int slots = 0;
  float ns = 0;  // their predicted time
};

/// Early tasks (protocol/successors.hpp) that an executor has: placement has not given them to it.
struct unplaced_load {
  int tasks = 0;
  float ns = 0;  // their predicted time
};

class executor {
 public:
  virtual ~executor() = default;

  virtual const executor_facts& facts() const = 0;
  /// Says which thread will look at the tasks handed over without being woken.
  enum class attention {
    caller,    ///< the caller is one of the executor's threads, holds a slot and looks for work next
    somebody,  ///< a thread of this runtime took a turn a moment ago
    nobody,    ///< nobody may be looking
    client,    ///< as nobody; and the calling thread, outside all bodies, may be about to wait for it
  };
  /// Takes ready tasks to run, in order of priority, then as given. Never refuses, never blocks.
  virtual void run_tasks(std::span<task_record* const>, attention) = 0;
  /// As run_tasks, with an early task of the usual priority that needs one slot. Threads with different numbers do not
  /// wait for each other; of those with the same number one at a time calls this.
  virtual void run_own(task_record& t, std::size_t number, attention who) {
    (void)number;
    task_record* const one = &t;
    run_tasks({&one, 1}, who);
  }
  /// Takes early tasks that a thread of another executor has made ready. Any thread, without the turn; never blocks.
  virtual void run_released(std::span<task_record* const> tasks) { run_tasks(tasks, attention::somebody); }
  /// Called after the turn in which tasks were handed over has been left. Nodes send then, core groups wake threads.
  virtual void after_turn() {}
  /// True if after_turn is to be called for what the executor has been given in this turn.
  virtual bool wants_after_turn() const { return facts().kind == device_kind::node; }
  /// Tells a node that a task which it has been handed is to write what another node is promised: it sends the box when
  /// the task has ended, and before anything that it is handed later changes it. With placement's turn.
  virtual void make_promise(const promise&) {}
  /// Tells a node about a task that it is handed next: what other nodes are told to send for it. With placement's turn.
  virtual void expect(task_record&, std::vector<promise>&&) {}
  /// Returns a number of the node that is there: another one after it has gone, 0 while none is. Any thread.
  virtual std::uint64_t stay() const { return 0; }
  /// Copies home a tile that only this node has. Takes a handle of the array. Only nodes do this.
  virtual void save(array_core&, std::uint32_t) {}
  /// Returns the number of sleeping threads that would take work.
  virtual int sleepers() const = 0;
  /// Wakes one sleeping thread to look for mail.
  virtual void wake_one() = 0;
  /// Makes sure that a sleeper looks up now and then: there is work that a thread which is awake should see to.
  virtual void keep_watch() = 0;
  /// Returns the number of tasks handed over that no thread of the executor has taken.
  virtual std::size_t queued() const = 0;
  /// Returns `queued` and the tasks that threads have taken and not started; slower to find out.
  virtual std::size_t unstarted() const = 0;
  /// Returns the predicted nanoseconds of tasks handed over that no thread has taken, beyond what moving them elsewhere
  /// would cost. Not of early tasks, which no other executor may run.
  virtual float queued_ns() const = 0;
  /// True if there are tasks that are not early among `unstarted`; as slow to find out.
  virtual bool has_movable() const { return unstarted() != 0; }
  /// True if the executor is short of memory: tasks that no other may run should be handed over long before their turn,
  /// for the more it knows of what comes, the less it has to move.
  virtual bool looks_ahead() const { return false; }
  /// Hands back tasks that have not been started and that `wanted` agrees to, the newest of the lowest priority
  /// first, as far as there is room (rebalancing, shutdown). Early tasks, which no other executor may run, stay as long
  /// as threads may release them.
  virtual std::size_t take_back(std::span<task_record*> room,
                                const std::function<bool(const task_record&)>& wanted) = 0;
  /// Asks for tasks that were sent on to a node and have not begun there: they are returned as tasks that could not
  /// run.
  virtual void recall(const std::function<bool(const task_record&)>& wanted) { (void)wanted; }
  /// Returns the load of bodies that wait. A change of it is reported to placement::waits_changed.
  virtual waiting_load waiting() const { return {}; }
  /// Returns the load of early tasks that wait or run here. Left out are those of less than a microsecond, and what
  /// threads have taken and not begun, 80 us for each.
  virtual unplaced_load unplaced() const { return {}; }
  /// Returns how many of a core group's slots have a body that runs.
  virtual int slots_in_use() const { return 0; }
  /// True if all of a core group's slots have bodies that are not predicted to end within a millisecond: no thread that
  /// is awake comes for mail before. Others always are: they do not look at the mail of placement.
  virtual bool is_held_up() const { return true; }
  /// Reports the ends of tasks that a thread has kept to itself, as it may be held up. Any thread.
  virtual void report_ended() {}
  /// True if a task of that kernel could begin at once. If not, the executor prepares the kernel in advance, as soon as
  /// it is idle. The kernel's address must stay the same.
  virtual bool is_ready_for(const kernel_info&) { return true; }
  /// True if there are tasks that could run now and no thread is awake to run them. Also true for a moment while the
  /// last thread goes to sleep.
  virtual bool is_stalled() const { return false; }
  virtual executor_report report() const = 0;
  virtual void start() = 0;

 protected:
  /// Returns a report of what the executor is and has before it; what it has done is still to be told.
  executor_report report_of_facts() const {
    executor_report r;
    r.name = facts().shown_name();
    r.kind = facts().kind;
    r.slots = facts().slots;
    r.queued = unstarted();
    return r;
  }
};

}  // namespace troupe::detail
