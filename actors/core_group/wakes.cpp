// What this file is for: threads of a core group that are woken, counted as awake, added, or moved to another core.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "actors/core_group/actor.hpp"
#include "actors/placement/placement.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

// Wakes threads. The kernel may let one of them have this core at once: the thread that wakes them counts as waiting
// for its core until it is back.
void group_actor::wake(std::size_t threads, parking::nearness where) {
  worker* const self = this_worker && &this_worker->owner() == this ? this_worker : nullptr;
  if (self) self->parking_state.looks.set(ticks(), devices::current_cpu());
  parking_.wake(threads, where);
  if (self) self->parking_state.looks.clear();
}

void group_actor::make_spares(int n) {
  for (; n > 0; --n)
    if (!threads_.try_add()) parking_.no_spare();  // the system gives no more threads: those that exist must do
}

void group_actor::be_awake(worker& self, bool now) {
  if (now == self.active) return;
  self.active = now;
  awake_.fetch_add(now ? 1 : -1, std::memory_order_relaxed);
  now ? placement_.became_active() : placement_.became_idle();
}

// Notes that the thread has found work and is about to do it, and how long it had none.
void group_actor::found_work(worker& self) {
  self.parking_state.looks.clear();
  if (self.search.looks_since != 0) {
    self.search.looks_since = 0;
    lookers_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (self.search.dry_since == 0) return;
  std::uint64_t gap = ticks() - std::exchange(self.search.dry_since, 0);
  if (std::exchange(self.search.has_slept, false)) gap -= std::min(gap, parking_.wake_up());
  self.search.patience.waited(gap);
  self.search.brief.waited(gap);
}

// True if more threads are awake than the quota has cores. Who looks then spends time that others compute with.
bool group_actor::is_over_quota() const { return core_quota_ != 0 && placement_.active() > core_quota_; }

// Moves threads of the group that are awake and wait for the core that this one computes on to another core: there is
// one if not more threads are awake than there are cores.
void group_actor::move_stuck(worker& self) {
  self.minding.nodes = 0;
  const std::uint64_t now = ticks();
  if (now - self.minding.last < stuck_ticks_) return;
  self.minding.last = now;
  if (!may_move_ || placement_.active() > usable_cores_) return;
  const int here = devices::current_cpu();
  threads_.try_each([&](worker& w) {
    if (&w != &self && w.parking_state.looks.is_stuck(now, stuck_ticks_, here) &&
        w.parking_state.looks.begin_move(now, 20 * stuck_ticks_))
      devices::move_thread_from(here, w.system_thread.load(std::memory_order_relaxed));
  });
}

float group_actor::moment_ns() const { return outside::moment_ns(wake_up_ns(), placement_.active() < usable_cores_); }

// ---- for queued tasks -----------------------------------------------------------------------------------------------

// Sees to it that so many tasks, which have just been queued, are taken soon.
void group_actor::call_threads(std::size_t handed, attention who) {
  if (parking_.slot_wanted()) parking_.call_passer();
  if (parking_.sleepers() != 0) call_sleepers(handed, who, queue_.stealable_ns());
}

// The same for a task that a thread with that number has just handed over.
void group_actor::call_threads_for_one(std::size_t number, attention who) {
  if (parking_.slot_wanted()) parking_.call_passer();
  if (parking_.sleepers() != 0) call_sleepers(1, who, queue_.stealable_ns_of(number));
}

void group_actor::call_sleepers(std::size_t handed, attention who, float stealable_ns) {
  // A wake-up costs as much as hundreds of small tasks: it is sent for work that is worth one, or when no thread would
  // look otherwise.
  const auto threads = std::min(static_cast<std::size_t>(stealable_ns / wake_worth_ns()), handed);
  if (threads != 0)
    owe_wake_ups(threads);
  else if (who == attention::nobody || awake_.load(std::memory_order_seq_cst) == 0)  // other groups do not look here
    owed_.add_near();
  else if (who != attention::caller || handed > 1)
    parking_.keep_watch();
}

// Wakes and makes the threads for which there was work in a turn: the one that wakes them may lose its core to one of
// them, and must not hold the turn then. A thread that took the next turn meanwhile may find what it owes already done.
void group_actor::wake_owed() {
  if (!owed_.any()) return;
  if (const std::size_t threads = owed_.take()) wake(threads, parking::nearness::far);
  if (owed_.take_near()) wake(1, parking::nearness::near);
  make_spares(owed_.take_spares());
}

// Notes that threads are to be woken for work that is worth so many; those that look come by themselves.
void group_actor::owe_wake_ups(std::size_t threads) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // see stops_looking
  const auto lookers = static_cast<std::size_t>(std::max(0, lookers_.load(std::memory_order_seq_cst)));
  if (threads > lookers)
    owed_.add(threads - lookers);
  else
    parking_.keep_watch();  // one that looks may be handling a message
}

}  // namespace troupe::detail
