// What this file is for: the life of a task in one atomic word: waiting, claimed by one thread, done.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <thread>

#include <troupe/detail/task.hpp>

#include "actors/protocol/wait_table.hpp"

namespace troupe::detail {

/// Moves a task from waiting to claimed; the thread that succeeds runs or fails it, and alone writes its error.
inline bool claim(task_record& t) noexcept {
  std::uint32_t p = t.phase.load(std::memory_order_acquire);
  while ((p & phase_mask) == phase_waiting)
    if (t.phase.compare_exchange_weak(p, (p & ~phase_mask) | phase_claimed, std::memory_order_acq_rel)) return true;
  return false;
}

/// Marks the task as done, with its result or error in place, and wakes all that wait for it. False if the task was
/// left behind before.
inline bool fulfil(task_record& t, wait_table& board) noexcept {
  const std::uint32_t before = t.phase.exchange(phase_done, std::memory_order_acq_rel);
  if ((before & (phase_watched | phase_abandoned)) == 0) return true;
  if (before & phase_abandoned) t.phase.fetch_or(phase_abandoned, std::memory_order_acq_rel);
  board.announce(t);
  return (before & phase_abandoned) == 0;
}

/// Marks a running task as done while its body goes on: waiters are woken, and what the body still writes is discarded.
/// False if the task is not running.
inline bool leave_behind(task_record& t, wait_table& board) noexcept {
  std::uint32_t p = t.phase.load(std::memory_order_acquire);
  while ((p & phase_mask) == phase_claimed) {
    const std::uint32_t then = (p & ~(phase_mask | phase_watched)) | phase_done | phase_abandoned;
    if (!t.phase.compare_exchange_weak(p, then, std::memory_order_acq_rel)) continue;
    if (p & phase_watched) board.announce(t);
    return true;
  }
  return false;
}

inline bool is_left_behind(const task_record& t) noexcept {
  return (t.phase.load(std::memory_order_acquire) & phase_abandoned) != 0;
}

inline bool is_fulfilled(const task_record& t) noexcept {
  return (t.phase.load(std::memory_order_acquire) & phase_mask) == phase_done;
}

/// True if a thread has claimed the task and not fulfilled it.
inline bool is_claimed(const task_record& t) noexcept {
  return (t.phase.load(std::memory_order_acquire) & phase_mask) == phase_claimed;
}

/// For a task that another thread has claimed and that never started: waits the few instructions until its error is in
/// place.
inline void await_fulfilled(const task_record& t) noexcept {
  while (!is_fulfilled(t)) std::this_thread::yield();
}

}  // namespace troupe::detail
