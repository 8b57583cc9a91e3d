// What this file is for: sleeping, napping and waking.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group/parking.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "actors/protocol/late_wakes.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

using logic::slots;

namespace {
constexpr auto nap = std::chrono::milliseconds(1);
constexpr auto nap_max = 16 * nap;  // while there is nothing to watch
}  // namespace

// ---- threads of the group -------------------------------------------------------------------------------------------

parking::woken parking::park(thread& self) {
  std::unique_lock hold(lock_);
  if (self.seat == thread::nowhere) {
    self.seat = book_.add(!self.has_slot);
    threads_.push_back(&self);
  } else if (std::exchange(self.dismissed, false)) {
    book_.add_again(self.seat);
  }
  book_.arrive(self.seat, self.slots());
  carry_out();
  if (book_.done().spares != 0 &&
      book_.state_of(self.seat) != slots::thread_state::awake) {  // it makes them and comes back
    self.has_slot = book_.leave(self.seat) != 0;
    self.spares_due = take_spares();
    publish();
    return woken::to_work;
  }
  while (book_.state_of(self.seat) != slots::thread_state::awake) {
    if (wake_others(self, hold)) continue;
    self.is_surplus = false;
    if (!closed_) self.dismissed = book_.dismiss(self.seat);
    if (closed_ || self.dismissed) {
      self.has_slot = closed_ && book_.leave(self.seat) != 0;
      closed_ ? publish() : carry_out();
      return woken::to_end;
    }
    if (book_.state_of(self.seat) == slots::thread_state::asleep)
      sleep(self, hold);
    else
      stay_idle(self, hold);
  }
  self.look_again = {};
  self.coming = self.is_surplus = false;
  self.roused_at = 0;
  self.looks.clear();
  const slots::duty d = book_.take_duty(self.seat);
  self.has_slot = d.slots != 0;
  self.more = std::max(0, d.slots - 1);
  self.task = d.task;
  self.look = !d.task;
  self.at_once = d.at_once;
  self.spares_due = take_spares();
  if (!d.task && watch_wanted_) pass_watch_on();  // this thread may have been asked to keep the watch
  wake_others(self, hold);  // last: others may have the slot of a thread that has been called and has not come
  return d.task ? woken::for_task : woken::to_work;
}

// Sleeps without a slot. It wakes at `look_again`: a task may pass by then that could not before; mail that no thread
// comes for may contain one.
void parking::stay_idle(thread& self, std::unique_lock<std::mutex>& hold) {
  constexpr std::chrono::steady_clock::time_point never{};
  if (self.look_again == never && book_.passer() && world_.work_in_sight()) look_soon(self);
  const auto until = self.look_again;
  const auto is_over = [&] {
    return closed_ || self.is_surplus || book_.state_of(self.seat) != slots::thread_state::idle ||
           self.look_again != until;
  };
  if (until == never) {
    self.wake.wait(hold, is_over);
    note_woken(self);
  } else if (!self.wake.wait_until(hold, until, is_over)) {
    self.look_again = never;
    if (book_.pass(self.seat)) carry_out();
  }
}

void parking::look_soon(thread& t) {
  const auto soon = std::chrono::steady_clock::now() + nap;
  if (t.look_again == std::chrono::steady_clock::time_point{} || t.look_again > soon) t.look_again = soon;
}

// Sleeps with a slot until the thread is given something, has lost its slot, or has found work.
void parking::sleep(thread& self, std::unique_lock<std::mutex>& hold) {
  self.cpu = devices::current_cpu();
  auto next_nap = nap;
  const auto stays = [&] { return !closed_ && book_.state_of(self.seat) == slots::thread_state::asleep; };
  while (stays()) {
    const bool others_work = world_.somebody_works();
    // A thread that posts work looks at the sleepers after posting; this one looks at the work after announcing sleep.
    if (others_work ? world_.left_alone() : world_.work_in_sight()) {
      book_.call(self.seat);
      carry_out();
    } else if (!others_work) {
      tell_idleness();
      watch_wanted_ = false;
      self.wake.wait(hold, [&] { return !stays() || watch_wanted_; });
      note_woken(self);
    } else if (napper_.load(std::memory_order_relaxed)) {
      self.wake.wait(hold, [&] { return !stays() || !napper_.load(std::memory_order_relaxed); });
      note_woken(self);
    } else {
      const bool over = take_nap(self, hold, next_nap);
      if (!over && (watch_wanted_ || !world_.work_overdue())) continue;
      watch_wanted_ = true;  // a thread that asked for a watch meanwhile counted on this one
      if (stays()) {
        book_.call(self.seat);
        carry_out();
      }
      pass_watch_on();
    }
  }
  if (watch_wanted_ && book_.state_of(self.seat) == slots::thread_state::idle)
    pass_watch_on();  // this thread has lost its slot meanwhile
}

// Sleeps for a while, less if the thread is roused or asked to keep watch, and chooses how long the next nap is: twice
// as long while there is no work, or one body that takes seconds would have a sleeper wake a thousand times for each.
// Returns true if the thread was roused.
bool parking::take_nap(thread& self, std::unique_lock<std::mutex>& hold, std::chrono::milliseconds& next) {
  watch_wanted_ = false;
  napping_ = self.seat;
  naps_long_.store(next > nap, std::memory_order_seq_cst);
  napper_.store(true, std::memory_order_seq_cst);
  // A thread that posts work looks at the naps after posting, this one at the work after announcing its own.
  if (next > nap && world_.work_to_watch()) {
    next = nap;
    naps_long_.store(false, std::memory_order_seq_cst);
  }
  const auto is_roused = [&] { return closed_ || book_.state_of(self.seat) != slots::thread_state::asleep; };
  self.wake.wait_for(hold, next, [&] { return is_roused() || watch_wanted_; });
  note_woken(self);
  next = watch_wanted_ || world_.work_to_watch() ? nap : std::min<std::chrono::milliseconds>(2 * next, nap_max);
  napping_ = thread::nowhere;
  napper_.store(false, std::memory_order_seq_cst);
  return is_roused();
}

void parking::rouse(thread& t) {
  t.coming = true;
  t.roused_at = ticks();
  t.looks.set(t.roused_at, -1);  // the kernel has not said where
}

// Learns what a wake-up takes from one that has just ended: the first is believed, of the later ones the mean of eight
// or so. A single one that took very long, because the core was somebody else's, moves the mean little.
void parking::note_woken(thread& self) {
  const std::uint64_t since = std::exchange(self.roused_at, 0);
  if (since == 0) return;
  const std::uint64_t mean = wake_up_.load(std::memory_order_relaxed);
  const std::uint64_t took = std::min(ticks() - since, 4 * mean);
  if (woken_ < 8) ++woken_;
  wake_up_.store(mean - mean / woken_ + took / woken_ + 1, std::memory_order_relaxed);
}

// Wakes the sleepers that the thread that woke this one has left to it; true if the lock was free meanwhile.
bool parking::wake_others(thread& self, std::unique_lock<std::mutex>& hold) {
  const std::size_t n = std::exchange(self.to_wake, 0);
  if (n == 0) return false;
  hold.unlock();
  wake(n, nearness::far);
  hold.lock();
  return true;
}

void parking::ended(const thread& self) {
  std::lock_guard hold(lock_);
  book_.calm(self.restless);
  book_.ended(self.slots());  // a body may still wait for these slots
  carry_out();
}

void parking::tell_idleness() {
  if (static_cast<int>(book_.asleep().size()) == slots_) world_.all_asleep();
}

int parking::give_slots(int n) {
  if (n == 0) return 0;
  std::lock_guard hold(lock_);
  return give(n);
}

int parking::give_all_slots(thread& self) {
  if (self.slots() == 0) return 0;
  std::lock_guard hold(lock_);
  book_.calm(std::exchange(self.restless, 0));
  return give(self.slots());
}

int parking::give(int n) {
  book_.give(n);
  carry_out();
  if (!world_.somebody_works()) tell_idleness();
  return take_spares();
}

void parking::calm(thread& self) {
  std::lock_guard hold(lock_);
  book_.calm(std::exchange(self.restless, 0));
}

int parking::relieve() {
  std::lock_guard hold(lock_);
  book_.relieve();
  carry_out();
  return take_spares();
}

void parking::take_slots(thread& self, std::chrono::steady_clock::time_point until) {
  const int n = self.slots();
  if (n == 0) return;
  std::unique_lock hold(lock_);
  slot_wait mine;
  const auto me = reinterpret_cast<slots::ticket>(&mine);
  mine.granted = book_.take(me, n);
  carry_out();
  const auto granted = [&] { return mine.granted; };
  if (until == std::chrono::steady_clock::time_point::max()) {
    mine.go_on.wait(hold, granted);
    return;
  }
  // A wait whose time has passed would only release the lock and take it again; hundreds of bodies that poll futures
  // spent nearly all their time with that.
  if (granted()) return;
  const bool is_late = std::chrono::steady_clock::now() >= until;
  if (!is_late && mine.go_on.wait_until(hold, until, granted)) return;
  book_.take_missing(me, n);
  self.restless = n;
  carry_out();
}

bool parking::may_stand_aside(const thread& self) {
  if (self.slots() != 1) return false;
  std::lock_guard hold(lock_);
  const bool may = book_.may_stand_aside();
  carry_out();
  return may;
}

int parking::stand_aside() {
  std::unique_lock hold(lock_);
  slot_wait mine;
  mine.granted = book_.stand_aside(reinterpret_cast<slots::ticket>(&mine));
  carry_out();
  mine.go_on.wait(hold, [&] { return mine.granted; });
  return take_spares();
}

bool parking::borrow_slot() {
  std::lock_guard hold(lock_);
  if (closed_ || !book_.lend(napping_)) return false;
  carry_out();
  return true;
}

int parking::return_slot() {
  std::lock_guard hold(lock_);
  book_.give_back();
  carry_out();
  return take_spares();
}

// ---- any thread -----------------------------------------------------------------------------------------------------

std::optional<parking::line_state> parking::line() {
  std::lock_guard hold(lock_);
  if (book_.line() == 0) return {};
  return line_state{book_.first(), book_.free()};
}

void parking::call_passer() {
  std::lock_guard hold(lock_);
  if (const auto one = book_.passer(); one && book_.pass(*one)) carry_out();
}

int parking::give_slotless(task_record& t) {
  std::lock_guard hold(lock_);
  book_.add_slotless(t);
  carry_out();
  return take_spares();
}

int parking::give_wide(task_record& t, int slots, int priority) {
  std::lock_guard hold(lock_);
  book_.add_wide(t, slots, priority);
  carry_out();
  return take_spares();
}

void parking::no_spare() {
  std::lock_guard hold(lock_);
  book_.no_spare();
  carry_out();
}

std::size_t parking::take_unstarted(task_record** room, std::size_t n,
                                    const std::function<bool(const task_record&)>& wanted) {
  std::lock_guard hold(lock_);
  const std::size_t got = book_.take_unstarted(room, n, wanted);
  carry_out();
  return got;
}

int parking::spares_due() {
  std::lock_guard hold(lock_);
  return take_spares();
}

// Notifies the chosen threads after the lock is free again: one may start at once on this core.
void parking::wake(std::size_t n, nearness where) {
  if (n == 0) return;
  const int here = devices::current_cpu();
  std::array<thread*, wakes_of_one> chosen;
  std::size_t count = 0;
  {
    std::lock_guard hold(lock_);
    if (where == nearness::near && book_.called() >= n) return;
    // A thread that was called to this core and has not come yet waits for the waker to leave the core.
    const bool pending = std::ranges::any_of(threads_, [&](const thread* t) { return t->coming && t->cpu == here; });
    const bool stay = where == nearness::near && !pending;
    const auto call = [&](bool any) {
      for (std::size_t i = book_.asleep().size(); i-- != 0 && count < std::min(n, chosen.size());) {
        thread* const t = threads_[book_.asleep()[i]];
        if (!any && (t->cpu == here) != stay) continue;
        book_.call(t->seat);
        rouse(*t);
        chosen[count++] = t;
      }
    };
    call(false);
    call(true);
    book_.done().roused.clear();
    const std::size_t others = std::min(n - count, book_.asleep().size());
    for (std::size_t i = 0; i < others; ++i) ++chosen[i % count]->to_wake;
    if (count + others < n) book_.call_next(n - count - others);
    publish();
  }
  for (std::size_t i = 0; i < count; ++i) late_wakes::wake(chosen[i]->wake);
}

void parking::keep_watch() {
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  if (napper_.load(std::memory_order_seq_cst) && !naps_long_.load(std::memory_order_seq_cst)) return;
  thread* one = nullptr;
  {
    std::lock_guard hold(lock_);
    if (napping_ != thread::nowhere) {
      if (!naps_long_.exchange(false, std::memory_order_seq_cst)) return;
      watch_wanted_ = true;
      one = threads_[napping_];
    } else if (!book_.asleep().empty()) {
      watch_wanted_ = true;
      one = threads_[book_.asleep().front()];
    } else if (const auto passer = book_.passer()) {
      one = threads_[*passer];
      look_soon(*one);
    } else {
      return;
    }
  }
  late_wakes::wake(one->wake);
}

bool parking::has_slot_for_nobody() {
  std::lock_guard hold(lock_);
  const bool there_is_one = !book_.asleep().empty() || (book_.line() == 0 && book_.free() != 0);
  return there_is_one && !napper_.load(std::memory_order_relaxed) && book_.coming() == 0 &&
         std::ranges::none_of(threads_, &thread::coming);
}

void parking::close() {
  std::lock_guard hold(lock_);
  closed_ = true;
  book_.close();
  for (thread* t : threads_) late_wakes::wake(t->wake);
}

// ---- inside ---------------------------------------------------------------------------------------------------------

void parking::publish() {
  sleepers_.store(static_cast<int>(book_.asleep().size()) + (book_.passer() ? 1 : 0), std::memory_order_seq_cst);
  if (const int line = static_cast<int>(book_.line()) + std::max(0, -book_.free());
      line != slots_wanted_.load(std::memory_order_relaxed))
    slots_wanted_.store(line, std::memory_order_seq_cst);  // only if changed: a store is as dear as ten loads
}

// Notifies the threads and bodies that logic::slots has given something. Spares that are due are left to the caller,
// which makes them without the lock.
void parking::carry_out() {
  publish();
  slots::effects& e = book_.done();
  for (std::size_t i = 0; i < e.promoted.size(); ++i) look_after(e.promoted[i]);
  e.promoted.clear();
  for (const slots::ticket t : e.granted) {
    auto* const body = reinterpret_cast<slot_wait*>(t);
    body->granted = true;
    body->go_on.notify_one();
  }
  e.granted.clear();
  for (const slots::seat s : e.roused) {
    rouse(*threads_[s]);
    late_wakes::wake(threads_[s]->wake);
  }
  e.roused.clear();
  // Threads that a crowd of waiting bodies needed end one after the other: each looks here for the next.
  if (const auto s = book_.surplus(); s && !closed_ && !threads_[*s]->is_surplus) {
    threads_[*s]->is_surplus = true;
    late_wakes::wake(threads_[*s]->wake);
  }
}

// Wakes or watches an idle thread that has got a slot and sleeps on: a thread that posted work before did not see it
// among the sleepers.
void parking::look_after(slots::seat s) {
  if (book_.state_of(s) != slots::thread_state::asleep || !world_.work_in_sight()) return;
  if (!world_.somebody_works() || world_.left_alone()) {
    book_.call(s);
    publish();
  } else if (!napper_.load(std::memory_order_relaxed)) {
    watch_wanted_ = true;
    late_wakes::wake(threads_[s]->wake);
  }
}

void parking::pass_watch_on() {
  if (!book_.asleep().empty()) late_wakes::wake(threads_[book_.asleep().front()]->wake);
}

}  // namespace troupe::detail
