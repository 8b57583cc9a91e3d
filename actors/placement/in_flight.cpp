// What this file is for: threads that wait until tasks in flight have finished.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/in_flight.hpp"

#include <algorithm>

namespace troupe::detail {

namespace {

// Times after which a thread held back at the bound looks whether tasks wait for it, and for ends that have been kept.
constexpr std::chrono::milliseconds first_look_after{1}, look_again_after{50};

// Counts a waiting thread. It is counted before it looks at what it waits for: either it sees that, or it is woken.
class counted {
 public:
  explicit counted(std::atomic<int>& n) : n_(n) { n_.fetch_add(1, std::memory_order_seq_cst); }
  ~counted() { n_.fetch_sub(1, std::memory_order_relaxed); }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;

 private:
  std::atomic<int>& n_;
};

}  // namespace

void in_flight::wait_until_drained(const std::function<void()>& meanwhile) {
  const auto has_drained = [&] { return given_up() || count() <= drained_; };
  const counted waits(bound_waiters_);
  for (std::chrono::milliseconds next = first_look_after; !is_exempt_ || !is_exempt_(); next = look_again_after) {
    {
      std::unique_lock hold(lock_);
      if (changed_.wait_for(hold, next, has_drained)) return;
    }
    meanwhile();
  }
}

bool in_flight::wait_for_room(std::chrono::steady_clock::time_point deadline, const std::function<void()>& meanwhile) {
  const auto has_room = [&] { return closed() || !is_at_bound() || given_up(); };
  const counted waits(bound_waiters_);
  for (std::chrono::milliseconds next = first_look_after;; next = look_again_after) {
    {
      const auto until = std::min(deadline, std::chrono::steady_clock::now() + next);
      std::unique_lock hold(lock_);
      if (changed_.wait_until(hold, until, has_room)) return true;
      if (until == deadline) return false;
    }
    meanwhile();
  }
}

bool in_flight::wait_until(const std::function<bool()>& quiet, std::chrono::steady_clock::time_point deadline) {
  bool was_quiet = false;  // other threads may submit before it is asked again
  const auto over = [&] { return (was_quiet = quiet()) || given_up(); };
  const counted waits(quiet_waiters_);
  std::unique_lock hold(lock_);
  if (deadline == std::chrono::steady_clock::time_point::max())
    changed_.wait(hold, over);
  else
    changed_.wait_until(hold, deadline, over);
  return was_quiet;
}

void in_flight::raise_counting(std::size_t least) {
  for (std::size_t now = counting_.load(std::memory_order_seq_cst); now < least;)
    if (counting_.compare_exchange_weak(now, least, std::memory_order_seq_cst)) break;
}

void in_flight::wake_some(bool quiet_wanted, bool room_wanted) {
  // No thread is woken only to go back to sleep: one wake-up costs more than hundreds of tasks.
  const std::uint64_t left = count();
  if ((left != 0 || !quiet_wanted) && (left > drained_ || !room_wanted)) return;
  { std::lock_guard hold(lock_); }
  changed_.notify_all();
}

void in_flight::give_up() {
  given_up_.store(true, std::memory_order_release);
  { std::lock_guard hold(lock_); }
  changed_.notify_all();
}

}  // namespace troupe::detail
