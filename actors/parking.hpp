// What this file is for: where the threads of a core group sleep, who of them is woken, and who holds a slot.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A slot is the right to run bodies. A thread with a slot and without work is a sleeper; a thread without a slot (a
// spare) waits for one that nobody uses, or for a task that needs none. While nobody works, sleepers are woken by
// whoever posts work. While somebody does, he sees to what there is, and one sleeper naps instead of sleeping, so
// that a body that takes longer than anybody thought holds up nobody.
//
// Bodies that go on after waiting, and tasks that need several slots at once, form a line. While there is one, threads
// leave their slots instead of taking more work, and the first in line is served as soon as enough are free: nobody who
// asks for many is passed by those who ask for one. Who holds slots never waits for more, so the line always moves.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/ready_queue.hpp"

namespace troupe::detail {

class parking {
 public:
  /// What a thread that goes to sleep asks about the world. Must not call back.
  class outlook {
   public:
    virtual bool somebody_works() const = 0;
    /// Work that nobody may come for. Sequentially consistent: who posts work looks at the sleepers afterwards.
    virtual bool work_in_sight() const = 0;
    /// Work that those who are awake do not seem to come for.
    virtual bool work_overdue() const = 0;
    virtual void all_asleep() = 0;

   protected:
    ~outlook() = default;
  };
  enum class woken { to_work, for_task, to_end };
  /// Where work that somebody is woken for is to run. A sleeper who ran on the waker's core last may start there, at
  /// once and instead of the waker; elsewhere it runs beside the waker, but to start an idle core of a virtual machine
  /// takes longer than small work does.
  enum class nearness { near, far };
  /// A thread's place. Lives as long as the group.
  struct thread {
    bool has_slot = false;
    bool look = false;  // woken because there is work, even if it does not seem worth it
    // When it was woken for a task: without a slot, or with more than one.
    task_record* task = nullptr;
    int more = 0;            // slots that it holds beside the first, until the task has run
    bool spare_due = false;  // somebody else is to be made, which counts as made
    int slots() const { return (has_slot ? 1 : 0) + more; }

   private:
    friend class parking;
    bool called = false;
    bool kept_in = false;  // its slot is lent
    int cpu = -1;          // where it went to sleep
    std::condition_variable wake;
  };

  parking(int slots, int spares_max, outlook& world) : slots_(slots), spares_max_(spares_max), world_(world) {}

  // ---- threads of the group -----------------------------------------------------------------------------------------
  /// Sleeps until there is a reason not to; a thread with a slot leaves it to a body that waits for one.
  woken park(thread&);
  void ended(const thread&);
  /// A body waits, or a task has ended that had more than one: slots are free. True: make a spare thread, which counts as
  /// made.
  bool give_slots(int n);
  void take_slots(int n);
  /// To be asked after slots or tasks have been taken: some may be free that nobody looks after. True: make a spare.
  bool spare_due();
  /// A thread from outside runs a body with the slot of a sleeper, who stays asleep meanwhile. False: none sleeps.
  bool borrow_slot();
  void return_slot();
  /// Somebody is in line, and sleeping threads hold slots he could use.
  bool slot_wanted() const { return slots_wanted_.load(std::memory_order_acquire) != 0; }

  // ---- any thread ---------------------------------------------------------------------------------------------------
  /// Hands a task to the spares. True: make one more, which counts as made.
  bool give_slotless(task_record&);
  /// The same with one that needs so many slots, at least two.
  bool give_wide(task_record&, int slots, int priority);
  /// The spare could not be made. True if there is no other.
  bool no_spare();
  /// Takes back those of these tasks that have not started.
  std::size_t take_unstarted(task_record** room, std::size_t n, const std::function<bool(const task_record&)>& wanted);
  void wake(std::size_t n, nearness);
  /// There is work that somebody who is awake is to see to: makes sure that a sleeper looks up now and then.
  void keep_watch();
  int sleepers() const { return sleepers_.load(std::memory_order_seq_cst); }
  void close();

 private:
  bool sleep(thread&, std::unique_lock<std::mutex>&);
  // With lock_ held.
  bool may_leave() const { return lent_ < static_cast<int>(asleep_.size()); }  // some sleeper's slot is with him
  void tell_sleepers();
  struct claimant {
    int slots;
    task_record* task;  // null: a body that goes on
    int priority;
  };
  bool can_begin(int own_slots) const {
    return !line_.empty() && line_.front().task && free_slots_ + own_slots >= line_.front().slots;
  }
  woken begin_first(thread&);
  void note_line() { slots_wanted_.store(static_cast<int>(line_.size()), std::memory_order_seq_cst); }
  bool tell_line();
  bool serve_line();
  bool make_spare();

  const int slots_, spares_max_;
  outlook& world_;
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<int> slots_wanted_{0};  // length of the line
  std::atomic<bool> napper_{false};

  std::mutex lock_;  // everything below
  std::vector<thread*> asleep_;
  std::condition_variable spare_work_, slot_free_;
  logic::ring<task_record*> slotless_;
  std::list<claimant> line_;
  int free_slots_ = 0, spares_idle_ = 0, spares_ = 0, lent_ = 0;
  bool watch_wanted_ = false, closed_ = false;
};

}  // namespace troupe::detail
