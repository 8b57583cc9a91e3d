// What this file is for: sleeping, napping, waking, and handing slots on.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/parking.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>

#include "devices/threads.hpp"

namespace troupe::detail {

namespace {
constexpr auto nap = std::chrono::milliseconds(1);
}

parking::woken parking::park(thread& self) {
  std::unique_lock hold(lock_);
  if (self.has_slot) {
    if (can_begin(1)) return begin_first(self);
    if (!line_.empty() && free_slots_ < line_.front().slots) {
      // Whoever is first in line goes on instead of this thread.
      ++free_slots_;
      self.has_slot = false;
      slot_free_.notify_all();
      return woken::to_work;  // it comes back, without a slot
    }
    if (closed_) return woken::to_end;
    self.look = sleep(self, hold);
    return woken::to_work;
  }
  ++spares_idle_;
  spare_work_.wait(hold,
                   [&] { return closed_ || !slotless_.empty() || can_begin(0) || (free_slots_ > 0 && line_.empty()); });
  --spares_idle_;
  if (!slotless_.empty()) {
    self.task = slotless_.pop_front();
    return woken::for_task;
  }
  if (can_begin(0)) return begin_first(self);
  if (closed_) return woken::to_end;
  --free_slots_;
  self.has_slot = true;
  return woken::to_work;
}

parking::woken parking::begin_first(thread& self) {
  const claimant first = line_.front();
  line_.pop_front();
  note_line();
  free_slots_ -= first.slots - self.slots();
  self.has_slot = true;
  self.more = first.slots - 1;
  self.task = first.task;
  self.spare_due = serve_line();
  return woken::for_task;
}

// Sleeps until there is a reason to look. True: look even if it seems not to be worth it.
bool parking::sleep(thread& self, std::unique_lock<std::mutex>& hold) {
  self.called = false;
  self.cpu = devices::current_cpu();
  asleep_.push_back(&self);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  if (lent_ != 0)  // with this one here, a thread that was called while the slots of all were lent may go
    for (thread* t : asleep_)
      if (t->called || t->kept_in) t->wake.notify_one();
  const auto called = [&] {
    return closed_ || (may_leave() && (self.called || slots_wanted_.load(std::memory_order_relaxed) != 0));
  };
  bool look = false;
  while (!called()) {
    if (!may_leave()) {
      self.kept_in = true;
      self.wake.wait(hold, [&] { return closed_ || may_leave(); });
      self.kept_in = false;
    } else if (!world_.somebody_works()) {
      // Whoever posts work looks at the sleepers after posting; who goes to sleep looks at the work after announcing it.
      look = world_.work_in_sight();
      if (look) break;
      if (static_cast<int>(asleep_.size()) == slots_) world_.all_asleep();
      watch_wanted_ = false;
      self.wake.wait(hold, [&] { return called() || watch_wanted_; });
    } else if (napper_.load(std::memory_order_relaxed)) {
      self.wake.wait(hold, [&] { return called() || !napper_.load(std::memory_order_relaxed); });
    } else {
      watch_wanted_ = false;
      napper_.store(true, std::memory_order_relaxed);
      const bool awaited = self.wake.wait_for(hold, nap, called);
      napper_.store(false, std::memory_order_relaxed);
      look = !awaited && world_.work_overdue() && may_leave();
      if (!awaited && !look) continue;
      watch_wanted_ = true;  // who asked for a watch meanwhile counted on this one
      break;
    }
  }
  look = look || self.called;
  std::erase(asleep_, &self);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  if (watch_wanted_ && !asleep_.empty()) asleep_.front()->wake.notify_one();  // it may have been this one's to keep
  return look;
}

void parking::ended(const thread& self) {
  std::lock_guard hold(lock_);
  free_slots_ += self.slots();  // for a body that still waits for some
  slot_free_.notify_all();
}

// Whoever is called is told after the lock is free again, as he may start at once on this core.
void parking::wake(std::size_t n, nearness where) {
  const int here = devices::current_cpu();
  while (n != 0) {
    std::array<thread*, 16> chosen;
    std::size_t count = 0;
    {
      std::lock_guard hold(lock_);
      // One who was called to this core and has not come yet waits for the waker to leave it.
      const bool pending =
          std::any_of(asleep_.begin(), asleep_.end(), [&](const thread* t) { return t->called && t->cpu == here; });
      const bool stay = where == nearness::near && !pending;
      const auto call = [&](bool any) {
        for (auto t = asleep_.rbegin(); t != asleep_.rend() && count < std::min(n, chosen.size()); ++t) {
          if ((*t)->called || !(any || ((*t)->cpu == here) == stay)) continue;
          (*t)->called = true;
          chosen[count++] = *t;
        }
      };
      call(false);
      call(true);
    }
    for (std::size_t i = 0; i < count; ++i) chosen[i]->wake.notify_one();
    if (count < chosen.size()) return;
    n -= count;
  }
}

void parking::keep_watch() {
  if (napper_.load(std::memory_order_relaxed) || sleepers_.load(std::memory_order_seq_cst) == 0) return;
  thread* one = nullptr;
  {
    std::lock_guard hold(lock_);
    if (asleep_.empty()) return;
    watch_wanted_ = true;
    one = asleep_.front();
  }
  one->wake.notify_one();
}

void parking::tell_sleepers() {
  for (thread* t : asleep_) t->wake.notify_one();
}

// ---- slots ----------------------------------------------------------------------------------------------------------

bool parking::make_spare() {
  if (spares_ >= spares_max_ || closed_) return false;
  ++spares_;
  return true;
}

// Tells those who can use what is free. True if a spare is one of them.
bool parking::tell_line() {
  if (free_slots_ == 0 || (!line_.empty() && free_slots_ < line_.front().slots)) return false;
  const bool for_body = !line_.empty() && !line_.front().task;
  (for_body ? slot_free_ : spare_work_).notify_all();
  return !for_body;
}

// The same. True: make a spare.
bool parking::serve_line() { return tell_line() && spares_idle_ < (line_.empty() ? free_slots_ : 1) && make_spare(); }

bool parking::spare_due() {
  std::lock_guard hold(lock_);
  return serve_line();
}

bool parking::give_slots(int n) {
  if (n == 0) return false;
  std::lock_guard hold(lock_);
  free_slots_ += n;
  return serve_line();
}

void parking::take_slots(int n) {
  if (n == 0) return;
  std::unique_lock hold(lock_);
  if (line_.empty() && free_slots_ >= n) {
    free_slots_ -= n;
    return;
  }
  const auto me = line_.insert(line_.end(), {n, nullptr, 0});
  note_line();
  tell_sleepers();  // they give their slots up
  slot_free_.wait(hold, [&] { return me == line_.begin() && free_slots_ >= n; });
  free_slots_ -= n;
  line_.erase(me);
  note_line();
  tell_line();
}

bool parking::give_wide(task_record& t, int slots, int priority) {
  std::lock_guard hold(lock_);
  auto at = line_.end();
  while (at != line_.begin() && std::prev(at)->task && std::prev(at)->priority < priority) --at;
  line_.insert(at, {slots, &t, priority});
  note_line();
  tell_sleepers();
  return serve_line();
}

bool parking::borrow_slot() {
  std::lock_guard hold(lock_);
  if (closed_ || !may_leave()) return false;
  ++lent_;
  return true;
}

void parking::return_slot() {
  std::lock_guard hold(lock_);
  --lent_;
  const bool wanted = slots_wanted_.load(std::memory_order_relaxed) != 0;
  for (thread* t : asleep_)
    if (wanted || t->called || t->kept_in) t->wake.notify_one();
}

bool parking::give_slotless(task_record& t) {
  std::lock_guard hold(lock_);
  slotless_.push_back(&t);
  spare_work_.notify_all();
  return static_cast<std::size_t>(spares_idle_) < slotless_.size() && make_spare();
}

bool parking::no_spare() {
  std::lock_guard hold(lock_);
  return --spares_ == 0;
}

std::size_t parking::take_unstarted(task_record** room, std::size_t n,
                                    const std::function<bool(const task_record&)>& wanted) {
  std::lock_guard hold(lock_);
  std::size_t got = 0;
  for (std::size_t left = slotless_.size(); left != 0; --left) {
    task_record* t = slotless_.pop_front();
    if (got < n && wanted(*t))
      room[got++] = t;
    else
      slotless_.push_back(t);
  }
  const auto before = line_.size();
  std::erase_if(line_, [&](const claimant& c) {
    if (!c.task || got == n || !wanted(*c.task)) return false;
    room[got++] = c.task;
    return true;
  });
  if (line_.size() == before) return got;
  note_line();
  tell_line();
  return got;
}

void parking::close() {
  std::lock_guard hold(lock_);
  closed_ = true;
  tell_sleepers();
  spare_work_.notify_all();
  slot_free_.notify_all();
}

}  // namespace troupe::detail
