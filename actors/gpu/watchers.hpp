// What this file is for: the threads that look whether a device's work has ended: its own, or those that wait for it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "actors/protocol/bell.hpp"
#include "actors/protocol/clock.hpp"

namespace troupe::detail {

/// Threads that wait for a task of a device and look after it meanwhile, and how the device's own thread sleeps beside
/// them. Waking it costs more than launching a small kernel, so it looks up now and then instead: a thread that has
/// begun something may go away without waiting for it.
class gpu_watchers {
 public:
  /// `tick_ns`: the length of a tick of `ticks()`.
  explicit gpu_watchers(double tick_ns)
      : look_ticks_(static_cast<std::uint64_t>(look_every_ns / tick_ns)),
        patience_ticks_(static_cast<std::uint64_t>(patience_ns / tick_ns)) {}

  // ---- any thread ---------------------------------------------------------------------------------------------------
  void add() { count_.fetch_add(1, std::memory_order_seq_cst); }
  /// Returns true if nobody looks any more after what is under way: the sleeping thread has to be rung.
  bool remove() {
    return count_.fetch_sub(1, std::memory_order_seq_cst) == 1 && unwatched_.load(std::memory_order_seq_cst);
  }
  bool any() const { return count_.load(std::memory_order_seq_cst) != 0; }
  /// True if something was under way when the turn was left.
  bool busy() const { return busy_.load(std::memory_order_relaxed); }
  /// Returns true if a watcher may look now; `now` in ticks. Devices' drivers lock what they are asked about: a thread
  /// that asks without a pause keeps them from getting on.
  bool may_look(std::uint64_t now) {
    if (now - looked_.load(std::memory_order_relaxed) < look_ticks_) return false;
    looked_.store(now, std::memory_order_relaxed);
    return true;
  }
  /// Lets the next sleep end soon by itself. Returns true if that was not asked for before: the sleeping thread has to
  /// be rung.
  bool ask_for_nap() { return !nap_.exchange(true, std::memory_order_seq_cst); }
  /// True if the sleeping thread need not be woken for one small task that a client has begun or left.
  bool is_patient(const bell::held&) const { return patient_; }
  /// Notes that a client has left one small task, at `now` in ticks.
  void note_left(const bell::held&, std::uint64_t now) { left_at_ = now; }

  // ---- the thread that has the device's turn ------------------------------------------------------------------------
  void note_busy(bool busy) { busy_.store(busy, std::memory_order_relaxed); }
  /// Notes that a waiting thread has looked: whether it did anything, whether something is under way still, and whether
  /// the device's thread sleeps.
  void note_driven(bool did, bool under_way, bool sleeps) {
    if (did && !under_way && any()) stay_.store(true, std::memory_order_relaxed);
    if (sleeps) unwatched_.store(under_way, std::memory_order_seq_cst);
  }

  // ---- the device's thread ------------------------------------------------------------------------------------------
  /// Leaves what is under way, if anything is, to watchers: the thread will not be told when it ends.
  void leave_to_them(bool under_way) { unwatched_.store(under_way, std::memory_order_seq_cst); }
  /// Sleeps until the bell rings, `until_look` has passed (0: for ever), or there is something that nobody looks after.
  void sleep(bell& door, bell::held& hold, std::chrono::nanoseconds until_look) {
    sleep_beside_them(door, hold, until_look);
    patient_ = false;
  }
  /// Notes that the thread looks itself from now on.
  void get_up() { unwatched_.store(false, std::memory_order_seq_cst); }

 private:
  // A waiting thread looks no more often.
  static constexpr double look_every_ns = 300.0;
  // Interval at which the sleeping thread looks up while others are busy.
  static constexpr auto nap = std::chrono::milliseconds(1);
  // The same while waiting threads may begin tasks, and the time after the last one for which it goes on.
  static constexpr auto short_nap = std::chrono::microseconds(100);
  static constexpr double patience_ns = 2e6;

  void sleep_beside_them(bell& door, bell::held& hold, std::chrono::nanoseconds until_look) {
    if (nap_.exchange(false, std::memory_order_relaxed)) {
      door.wait_for(hold, nap);
      return;
    }
    for (;;) {
      const bool loose = unwatched_.load(std::memory_order_seq_cst);
      patient_ = stay_.load(std::memory_order_relaxed) && ticks() - left_at_ < patience_ticks_;
      if (!loose && !patient_) break;
      if (door.wait_for(hold, short_nap)) return;
      if (loose && unwatched_.load(std::memory_order_seq_cst) && !any()) {
        stay_.store(false, std::memory_order_relaxed);  // the thread that began it does not stay
        return;
      }
    }
    if (until_look.count() != 0)
      door.wait_for(hold, until_look);
    else
      door.wait(hold);
  }

  const std::uint64_t look_ticks_, patience_ticks_;
  // With the bell's lock.
  bool patient_ = false;       // the sleeping thread looks up often
  std::uint64_t left_at_ = 0;  // ticks at which a client last left a small task
  // Any thread.
  std::atomic<std::uint64_t> looked_{0};  // ticks at which a waiting thread last looked
  std::atomic<bool> busy_{false};
  std::atomic<bool> unwatched_{false};  // something is under way, and the sleeping thread will not be told when it ends
  std::atomic<bool> stay_{false};       // threads that begin something stay and watch it
  std::atomic<bool> nap_{false};
  std::atomic<int> count_{0};
};

}  // namespace troupe::detail
