// What this file is for: sleeping, napping, waking, and handing slots on.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/parking.hpp"

#include <algorithm>
#include <chrono>

namespace troupe::detail {

namespace {
constexpr auto nap = std::chrono::milliseconds(1);
}

parking::woken parking::park(thread& self) {
  std::unique_lock hold(lock_);
  if (self.has_slot) {
    if (slots_wanted_.load(std::memory_order_relaxed) != 0 && free_slots_ == 0) {
      // A body that waited goes on instead of this thread.
      ++free_slots_;
      self.has_slot = false;
      slot_free_.notify_all();
      return woken::to_work;  // it comes back, without a slot
    }
    if (closed_) return woken::to_end;
    self.look = sleep(hold);
    return woken::to_work;
  }
  ++spares_idle_;
  work_.wait(hold, [&] {
    return closed_ || !slotless_.empty() || (free_slots_ > 0 && slots_wanted_.load(std::memory_order_relaxed) == 0);
  });
  --spares_idle_;
  if (!slotless_.empty()) {
    self.slotless = slotless_.pop_front();
    return woken::for_slotless;
  }
  if (closed_) return woken::to_end;
  --free_slots_;
  self.has_slot = true;
  return woken::to_work;
}

// Sleeps until there is a reason to look. True: look even if it seems not to be worth it.
bool parking::sleep(std::unique_lock<std::mutex>& hold) {
  const int asleep = sleepers_.fetch_add(1, std::memory_order_seq_cst) + 1;
  const auto called = [&] {
    return closed_ || (may_leave() && (tickets_ > 0 || slots_wanted_.load(std::memory_order_relaxed) != 0));
  };
  bool look = false;
  while (!called()) {
    if (!may_leave()) {
      ++kept_in_;
      work_.wait(hold, [&] { return closed_ || may_leave(); });
      --kept_in_;
    } else if (!world_.somebody_works()) {
      // Whoever posts work looks at the sleepers after posting; who goes to sleep looks at the work after announcing it.
      look = world_.work_in_sight();
      if (look) break;
      if (asleep == slots_) world_.all_asleep();
      watch_wanted_ = false;
      work_.wait(hold, [&] { return called() || watch_wanted_; });
    } else if (napper_.load(std::memory_order_relaxed)) {
      work_.wait(hold, [&] { return called() || !napper_.load(std::memory_order_relaxed); });
    } else {
      watch_wanted_ = false;
      napper_.store(true, std::memory_order_relaxed);
      const bool awaited = work_.wait_for(hold, nap, called);
      napper_.store(false, std::memory_order_relaxed);
      if (awaited) break;
      look = world_.work_overdue() && may_leave();
      if (look) break;
    }
  }
  if (tickets_ > 0) --tickets_;
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return look;
}

void parking::ended(const thread& self) {
  std::lock_guard hold(lock_);
  if (self.has_slot) ++free_slots_;  // for a body that still waits for one
  slot_free_.notify_all();
}

void parking::wake(std::size_t n) {
  std::size_t give;
  {
    std::lock_guard hold(lock_);
    const auto room = static_cast<std::size_t>(std::max(0, sleepers_.load(std::memory_order_relaxed)));
    give = tickets_ >= room ? 0 : std::min(n, room - tickets_);
    tickets_ += give;
  }
  // Spare threads sleep on the same condition, so waking exactly one could wake the wrong one.
  if (give == 0) return;
  if (spares_hint_.load(std::memory_order_relaxed) == 0 && give == 1)
    work_.notify_one();
  else
    work_.notify_all();
}

void parking::keep_watch() {
  if (napper_.load(std::memory_order_relaxed) || sleepers_.load(std::memory_order_seq_cst) == 0) return;
  {
    std::lock_guard hold(lock_);
    watch_wanted_ = true;
  }
  work_.notify_all();
}

// ---- slots -----------------------------------------------------------------------------------------------------------

bool parking::give_slot() {
  std::lock_guard hold(lock_);
  ++free_slots_;
  if (slots_wanted_.load(std::memory_order_relaxed) != 0) {
    slot_free_.notify_all();
    return false;
  }
  if (spares_idle_ == 0 && spares_ < spares_max_ && !closed_) {
    spares_hint_.store(++spares_, std::memory_order_relaxed);
    return true;
  }
  work_.notify_all();
  return false;
}

void parking::take_slot() {
  std::unique_lock hold(lock_);
  if (free_slots_ > 0) {
    --free_slots_;
    return;
  }
  slots_wanted_.fetch_add(1, std::memory_order_seq_cst);
  work_.notify_all();  // a sleeping thread with a slot gives it up
  slot_free_.wait(hold, [&] { return free_slots_ > 0; });
  --free_slots_;
  slots_wanted_.fetch_sub(1, std::memory_order_seq_cst);
}

bool parking::borrow_slot() {
  std::lock_guard hold(lock_);
  if (closed_ || !may_leave()) return false;
  ++lent_;
  return true;
}

void parking::return_slot() {
  bool tell;
  {
    std::lock_guard hold(lock_);
    --lent_;
    tell = kept_in_ != 0 || tickets_ != 0 || slots_wanted_.load(std::memory_order_relaxed) != 0;
  }
  if (tell) work_.notify_all();
}

bool parking::give_slotless(task_record& t) {
  std::lock_guard hold(lock_);
  slotless_.push_back(&t);
  work_.notify_all();
  if (static_cast<std::size_t>(spares_idle_) >= slotless_.size() || spares_ >= spares_max_ || closed_) return false;
  spares_hint_.store(++spares_, std::memory_order_relaxed);
  return true;
}

bool parking::no_spare() {
  std::lock_guard hold(lock_);
  spares_hint_.store(--spares_, std::memory_order_relaxed);
  return spares_ == 0;
}

std::size_t parking::take_slotless(task_record** room, std::size_t n) {
  std::lock_guard hold(lock_);
  std::size_t got = 0;
  while (got < n && !slotless_.empty()) room[got++] = slotless_.pop_front();
  return got;
}

void parking::close() {
  std::lock_guard hold(lock_);
  closed_ = true;
  work_.notify_all();
  slot_free_.notify_all();
}

}  // namespace troupe::detail
