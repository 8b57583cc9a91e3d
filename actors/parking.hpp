// What this file is for: where the threads of a core group sleep, who of them is woken, and who holds a slot.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A slot is the right to run bodies. A thread with a slot and without work is a sleeper; a thread without a slot (a
// spare) waits for one that nobody uses, or for a task that needs none. While nobody works, sleepers are woken by
// whoever posts work. While somebody does, he sees to what there is, and one sleeper naps instead of sleeping, so
// that a body that takes longer than anybody thought holds up nobody.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
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
  enum class woken { to_work, for_slotless, to_end };
  /// Where work that somebody is woken for is to run. A sleeper who ran on the waker's core last may start there, at
  /// once and instead of the waker; elsewhere it runs beside the waker, but to start an idle core of a virtual machine
  /// takes longer than small work does.
  enum class nearness { near, far };
  /// A thread's place. Lives as long as the group.
  struct thread {
    bool has_slot = false;
    bool look = false;  // woken because there is work, even if it does not seem worth it
    task_record* slotless = nullptr;

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
  /// A body waits: its slot is free. True: make a spare thread, which counts as made.
  bool give_slot();
  void take_slot();
  /// A thread from outside runs a body with the slot of a sleeper, who stays asleep meanwhile. False: none sleeps.
  bool borrow_slot();
  void return_slot();
  /// A body that waited wants to go on, and sleeping threads hold slots it could use.
  bool slot_wanted() const { return slots_wanted_.load(std::memory_order_acquire) != 0; }

  // ---- any thread ---------------------------------------------------------------------------------------------------
  /// Hands a task to the spares. True: make one more, which counts as made.
  bool give_slotless(task_record&);
  /// The spare could not be made. True if there is no other.
  bool no_spare();
  /// Takes back slotless tasks that have not started.
  std::size_t take_slotless(task_record** room, std::size_t n, const std::function<bool(const task_record&)>& wanted);
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

  const int slots_, spares_max_;
  outlook& world_;
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<int> slots_wanted_{0};
  std::atomic<bool> napper_{false};

  std::mutex lock_;  // everything below
  std::vector<thread*> asleep_;
  std::condition_variable spare_work_, slot_free_;
  logic::ring<task_record*> slotless_;
  int free_slots_ = 0, spares_idle_ = 0, spares_ = 0, lent_ = 0;
  bool watch_wanted_ = false, closed_ = false;
};

}  // namespace troupe::detail
