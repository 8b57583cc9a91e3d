// What this file is for: where the threads of a core group sleep, and which of them is woken.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// logic::slots decides which thread holds a slot, waits for one, or is given a task; here threads sleep until they have
// been given something. A thread with a slot and without work is a sleeper, one without a slot is idle. While no thread
// works, the thread that posts work wakes sleepers. While some thread works, it sees to new work, and one sleeper naps
// instead of sleeping, so that a body that takes longer than predicted holds up no other task.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/scheduling/look_mark.hpp"
#include "actors/logic/scheduling/slots.hpp"
#include "actors/protocol/clock.hpp"

namespace troupe::detail {

class parking {
 public:
  /// Questions that a thread asks about the runtime before it sleeps. The answers must not call back.
  class wake_conditions {
   public:
    /// True if some thread of the runtime is awake: it comes for mail, and for what is left of other groups' work.
    virtual bool somebody_works() const = 0;
    /// True if there is work that maybe no thread comes for. Sequentially consistent: a thread that posts work looks at
    /// the sleepers afterwards.
    virtual bool work_in_sight() const = 0;
    /// True if the group has tasks and none of its own threads is awake, whatever other groups do. Sequentially
    /// consistent as well.
    virtual bool left_alone() const { return false; }
    /// True if there is work that the threads that are awake do not seem to come for. One thread asks after each nap.
    virtual bool work_overdue() const = 0;
    /// True if there is work in sight, or some that may become overdue with nobody saying so: naps are short then.
    virtual bool work_to_watch() const { return work_in_sight(); }
    /// Called when all slots are sleepers'.
    virtual void all_asleep() = 0;

   protected:
    ~wake_conditions() = default;
  };
  enum class woken { to_work, for_task, to_end };
  /// The sleepers that `wake` prefers. Near: one that ran on the waker's core last, which may start there at once and
  /// instead of the waker. Far: one elsewhere, which runs beside the waker; but to start an idle core of a virtual
  /// machine takes longer than small work does.
  enum class nearness { near, far };
  /// The parking state of one thread. Lives as long as the group.
  struct thread {
    bool has_slot = false;
    bool look = false;     // woken because there is work, even if it does not seem worth it
    bool at_once = false;  // and is to take work before it leaves its slot to the line
    // The task that it was woken for, one that needs no slot or several; else null.
    task_record* task = nullptr;
    int more = 0;        // slots that it holds beside the first, until the task has run
    int restless = 0;    // slots that its body goes on with and that were not granted; see logic::slots
    int spares_due = 0;  // spare threads that it is to make, which count as made
    // Time at which the thread, without a slot, is to see whether it may pass the line for some task. Zero: never.
    std::chrono::steady_clock::time_point look_again{};
    bool dismissed = false;  // it has ended, and may be started again as another system thread
    logic::look_mark looks;  // set while the thread looks for work, and from when it is woken until it is here
    int slots() const { return (has_slot ? 1 : 0) + more; }

   private:
    friend class parking;
    static constexpr logic::slots::seat nowhere = ~logic::slots::seat{0};
    logic::slots::seat seat = nowhere;
    bool coming = false;          // it has been roused and is not here yet
    bool is_surplus = false;      // it sleeps without a slot and is to end, unless something has come for it
    std::size_t to_wake = 0;      // sleepers that it is to wake once it has woken itself
    std::uint64_t roused_at = 0;  // ticks; 0: not, or it has come
    int cpu = -1;                 // the core on which it went to sleep
    std::condition_variable wake;
  };

  /// A thread wakes so many sleepers itself: each takes the time of a system call, and where more are to be woken the
  /// last would wait longer for that than for a thread that has been woken to wake it.
  static constexpr std::size_t wakes_of_one = 8;

  /// `wake_up`: ticks that a wake-up is thought to take until one has been seen.
  parking(int slots, int spares_max, wake_conditions& world, std::uint64_t wake_up)
      : slots_(slots), world_(world), wake_up_(wake_up), book_(spares_max, slots) {}

  // ---- threads of the group -----------------------------------------------------------------------------------------
  /// Sleeps until the thread is to work, to run a task or to end. Its slot goes to a body that waits for one.
  woken park(thread&);
  /// Frees the slots of a thread that has ended.
  void ended(const thread&);
  /// Frees `n` slots: a body waits, or a task has ended that had more than one. Returns how many spare threads the
  /// caller is to make, which count as made.
  int give_slots(int n);
  /// Frees all slots of a thread whose body waits; returns as `give_slots`.
  int give_all_slots(thread&);
  /// Waits until `until` for as many slots as the thread had, and goes on without those that are missing: they are
  /// taken from the threads that give some back next.
  void take_slots(thread&, std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max());
  /// Notes that the thread's body, which went on without waiting for slots, waits again or has ended.
  void calm(thread&);
  /// Has an idle thread get a slot, or a spare made, for work that is there: called when a body that `calm` was called
  /// for waits, see logic::slots. Returns as `give_slots`.
  int relieve();
  /// Returns true if another thread could look for work first with the only slot of this one; see logic::slots.
  /// Afterwards spares may be due.
  bool may_stand_aside(const thread&);
  /// Has it do so, while this thread's body waits. Returns as `give_slots`.
  int stand_aside();
  /// Lends a thread from outside the slot of a sleeper, which stays asleep meanwhile, or of a thread that has not woken
  /// up yet. False: there is none.
  bool borrow_slot();
  /// Takes back a slot that `borrow_slot` lent; returns as `give_slots`.
  int return_slot();
  /// True if bodies or tasks are in line for slots: a thread that holds one is to leave it, unless it may pass.
  bool slot_wanted() const { return slots_wanted_.load(std::memory_order_acquire) != 0; }

  // ---- any thread ---------------------------------------------------------------------------------------------------
  struct line_state {
    logic::slots::request first;
    int free = 0;  // slots gathered so far
  };
  /// Returns the first in line for slots; none: the line is empty.
  std::optional<line_state> line();
  /// Has a thread without a slot see whether a task may pass the line; called when there are tasks, and a line.
  void call_passer();
  /// Hands a task to a thread, which needs no slot for it. Returns as `give_slots`.
  int give_slotless(task_record&);
  /// Hands over a task that needs `slots` slots, at least two. Returns as `give_slots`.
  int give_wide(task_record&, int slots, int priority);
  /// Notes that a spare thread could not be made.
  void no_spare();
  /// Takes back slotless and wide tasks that have not started and that `wanted` agrees to.
  std::size_t take_unstarted(task_record** room, std::size_t n, const std::function<bool(const task_record&)>& wanted);
  /// Returns how many spares are due after calls that do not return it; they count as made.
  int spares_due();
  /// Wakes `n` sleepers to look for work: some itself, and each of these its part of the others.
  void wake(std::size_t n, nearness);
  /// Makes sure that a sleeper looks up now and then: there is work that a thread which is awake should see to.
  void keep_watch();
  /// Returns how many threads could come for work: those that sleep, and one for slots gathered in the line.
  int sleepers() const { return sleepers_.load(std::memory_order_seq_cst); }
  /// Returns the ticks from when a thread is woken to when it runs, of late.
  std::uint64_t wake_up() const { return wake_up_.load(std::memory_order_relaxed); }
  /// True if a slot is free or a sleeper's, no thread naps, and none is on its way.
  bool has_slot_for_nobody();
  /// Has all threads end once their bodies return.
  void close();

 private:
  // A body that waits for slots.
  struct slot_wait {
    bool granted = false;
    std::condition_variable go_on;
  };

  // Called with lock_ held.
  void publish();
  void carry_out();
  int give(int n);
  int take_spares() { return std::exchange(book_.done().spares, 0); }
  void look_after(logic::slots::seat);
  void rouse(thread&);
  bool wake_others(thread&, std::unique_lock<std::mutex>&);
  void note_woken(thread&);
  void tell_idleness();
  void sleep(thread&, std::unique_lock<std::mutex>&);
  bool take_nap(thread&, std::unique_lock<std::mutex>&, std::chrono::milliseconds& next);
  void look_soon(thread&);
  void stay_idle(thread&, std::unique_lock<std::mutex>&);
  void pass_watch_on();

  const int slots_;
  wake_conditions& world_;
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<int> slots_wanted_{0};  // length of the line, and slots that are missing
  std::atomic<bool> napper_{false};
  std::atomic<bool> naps_long_{false};  // longer than usual: there was nothing to watch
  std::atomic<std::uint64_t> wake_up_;  // written with lock_ held
  std::uint64_t woken_ = 0;             // wake-ups that it has been learned from, while they are few; with lock_ held

  std::mutex lock_;  // guards everything below
  logic::slots book_;
  std::vector<thread*> threads_;  // by seat
  logic::slots::seat napping_ = thread::nowhere;
  bool watch_wanted_ = false, closed_ = false;
};

}  // namespace troupe::detail
