// What this file is for: deadlines in the order of their time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/deadlines.hpp"

#include <algorithm>

namespace troupe::detail {

namespace {
using std::chrono::milliseconds;
// Alarms beyond step_max are set in steps; deadlines beyond `far` are moved to it.
constexpr milliseconds step_max = std::chrono::hours(1), far = std::chrono::hours(24 * 365 * 10);
}  // namespace

void deadlines::use_alarm(std::function<void(milliseconds)> alarm) {
  std::lock_guard hold(lock_);
  alarm_ = std::move(alarm);
}

deadlines::entry deadlines::add(milliseconds after, action what) {
  const double ns = 1e6 * static_cast<double>(std::clamp(after, milliseconds(0), far).count());
  std::lock_guard hold(lock_);
  const entry when{clock_.ticks() + static_cast<std::uint64_t>(ns / clock_.ns_per_tick()), ++last_};
  if (closed_) return when;
  all_.emplace(when, std::move(what));
  set_alarm();
  return when;
}

void deadlines::drop(const entry& e) {
  action gone;  // destroyed without the lock
  std::lock_guard hold(lock_);
  if (auto found = all_.extract(e)) gone = std::move(found.mapped());
}

void deadlines::set_alarm() {
  if (all_.empty() || !alarm_) return;
  const std::uint64_t due = all_.begin()->first.first, now = clock_.ticks();
  if (rings_ != 0 && rings_ <= due && rings_ > now) return;
  rings_ = due;
  const double ns = static_cast<double>(due - std::min(due, now)) * clock_.ns_per_tick();
  const auto wait = milliseconds(1 + static_cast<std::int64_t>(ns / 1e6));
  if (wait > step_max) rings_ = now + static_cast<std::uint64_t>(1e6 * step_max.count() / clock_.ns_per_tick());
  alarm_(std::min(wait, step_max));
}

void deadlines::look() {
  for (;;) {
    action due;
    {
      std::lock_guard hold(lock_);
      if (closed_ || all_.empty()) return;
      if (all_.begin()->first.first > clock_.ticks()) {
        rings_ = 0;
        return set_alarm();
      }
      due = std::move(all_.begin()->second);
      all_.erase(all_.begin());
    }
    due();
  }
}

void deadlines::close() {
  std::map<entry, action> gone;
  std::lock_guard hold(lock_);
  closed_ = true;
  alarm_ = nullptr;
  gone.swap(all_);
}

}  // namespace troupe::detail
