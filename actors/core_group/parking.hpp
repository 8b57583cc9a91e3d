// What this file is for: where the threads of a core group sleep, and who of them is woken.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Who holds a slot, who waits for some and who is given what is decided by logic::slots; here threads sleep until they
// have been given something. A thread with a slot and without work is a sleeper, one without a slot is idle. While
// nobody works, sleepers are woken by whoever posts work. While somebody does, he sees to what there is, and one sleeper
// naps instead of sleeping, so that a body that takes longer than anybody thought holds up nobody.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/scheduling/slots.hpp"

namespace troupe::detail {

class parking {
 public:
  /// What a thread that goes to sleep asks about the world. Must not call back.
  class outlook {
   public:
    /// Some thread of the runtime is awake: it comes for mail, and for what is left of other groups' work.
    virtual bool somebody_works() const = 0;
    /// Work that nobody may come for. Sequentially consistent: who posts work looks at the sleepers afterwards.
    virtual bool work_in_sight() const = 0;
    /// The group has tasks, and none of its own threads is awake, whatever others do. Sequentially consistent as well.
    virtual bool left_alone() const { return false; }
    /// Work that those who are awake do not seem to come for. Asked by one thread after each nap.
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
    bool at_once = false;  // and is to take some before it leaves its slot to who wants it
    // When it was woken for a task: without a slot, or with more than one.
    task_record* task = nullptr;
    int more = 0;        // slots that it holds beside the first, until the task has run
    int restless = 0;    // slots that its body went on with before they were there; see logic::slots
    int spares_due = 0;  // so many threads are to be made, which count as made
    // Without a slot: when to see whether there is a task for which it may pass the line. Zero: never.
    std::chrono::steady_clock::time_point look_again{};
    bool dismissed = false;  // it has ended, and may come again on another thread of the system
    int slots() const { return (has_slot ? 1 : 0) + more; }

   private:
    friend class parking;
    static constexpr logic::slots::seat nowhere = ~logic::slots::seat{0};
    logic::slots::seat seat = nowhere;
    bool coming = false;  // it has been roused and is not here yet
    int cpu = -1;         // where it went to sleep
    std::condition_variable wake;
  };

  parking(int slots, int spares_max, outlook& world) : slots_(slots), world_(world), book_(spares_max, slots) {}

  // ---- threads of the group -----------------------------------------------------------------------------------------
  /// Sleeps until there is a reason not to; a thread with a slot leaves it to a body that waits for one.
  woken park(thread&);
  void ended(const thread&);
  /// A body waits, or a task has ended that had more than one: slots are free. Gives how many spare threads are to be
  /// made, which count as made.
  int give_slots(int n);
  /// The body on that thread waits and gives all its slots; as above.
  int give_all_slots(thread&);
  /// Waits until then for as many slots as it had, and goes on without those that are missing: they are taken from who
  /// gives some back next.
  void take_slots(thread&, std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max());
  /// The thread's body went on without waiting for slots, and waits again or has ended.
  void calm(thread&);
  /// A body that `calm` was called for waits, and there is work: see logic::slots. As `give_slots`.
  int relieve();
  /// A thread from outside runs a body with the slot of a sleeper, who stays asleep meanwhile, or of one that has not woken
  /// up yet. False: there is none.
  bool borrow_slot();
  /// Gives how many spares are to be made, as give_slots.
  int return_slot();
  /// Somebody is in line for slots: who holds one is to leave it, unless it may pass.
  bool slot_wanted() const { return slots_wanted_.load(std::memory_order_acquire) != 0; }

  // ---- any thread ---------------------------------------------------------------------------------------------------
  struct line_state {
    logic::slots::claim first;
    int free = 0;  // slots that have gathered
  };
  /// None: nobody is in line.
  std::optional<line_state> line();
  /// There are tasks, and a line: a thread without a slot is to see whether one of them may pass.
  void call_passer();
  /// Hands a task to a thread that needs no slot for it. Gives how many spares are to be made, which count as made.
  int give_slotless(task_record&);
  /// The same with one that needs so many slots, at least two.
  int give_wide(task_record&, int slots, int priority);
  /// A spare could not be made.
  void no_spare();
  /// Takes back those of these tasks that have not started.
  std::size_t take_unstarted(task_record** room, std::size_t n, const std::function<bool(const task_record&)>& wanted);
  /// Of what took slots or tasks back, spares may be due: gives how many, which count as made.
  int spares_due();
  void wake(std::size_t n, nearness);
  /// There is work that somebody who is awake is to see to: makes sure that a sleeper looks up now and then.
  void keep_watch();
  /// Threads that could come for work: those that sleep, and one for the slots that have gathered in the line.
  int sleepers() const { return sleepers_.load(std::memory_order_seq_cst); }
  /// A slot is free or a sleeper's, nobody naps, and no thread is on its way.
  bool has_slot_for_nobody();
  void close();

 private:
  // A body that waits for slots.
  struct claim {
    bool granted = false;
    std::condition_variable go_on;
  };

  // With lock_ held.
  void publish();
  void carry_out();
  int give(int n);
  int take_spares() { return std::exchange(book_.done().spares, 0); }
  void look_after(logic::slots::seat);
  void tell_idleness();
  void sleep(thread&, std::unique_lock<std::mutex>&);
  void look_soon(thread&);
  void stay_idle(thread&, std::unique_lock<std::mutex>&);
  void pass_watch_on();

  const int slots_;
  outlook& world_;
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<int> slots_wanted_{0};  // length of the line, and slots that are missing
  std::atomic<bool> napper_{false};

  std::mutex lock_;  // everything below
  logic::slots book_;
  std::vector<thread*> threads_;  // by seat
  logic::slots::seat napping_ = thread::nowhere;
  bool watch_wanted_ = false, closed_ = false;
};

}  // namespace troupe::detail
