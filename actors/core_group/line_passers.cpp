// What this file is for: which task may pass the line for slots.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group/line_passers.hpp"

#include <limits>

#include "actors/protocol/clock.hpp"

namespace troupe::detail {

void line_passers::ended(worker& w) {
  if (!std::exchange(w.passes, false)) return;
  std::lock_guard hold(lock_);
  passing_.ended(&w);
}

task_record* line_passers::choose(worker& w, parking& lot, task_queue& queue, const worker_threads& threads) {
  std::lock_guard hold(lock_);
  const auto line = lot.line();  // threads that have taken a gathered slot are known to passing_
  if (!line) return nullptr;
  const std::uint64_t now = ticks();
  const bool enough = line->free + 1 >= line->first.slots;
  if (!enough) look(*line, threads, now);
  // Bodies that go on come before any task.
  const int above = line->first.is_task ? line->first.priority : std::numeric_limits<int>::max();
  task_record* const t =
      queue.take_passing(above, [&](float ns) { return !enough && passing_.lets_pass(now, ticks_of(ns)); });
  if (t) {
    w.passes = true;
    passing_.passes(&w, now, ticks_of(t->predicted_ns));
  } else if (!enough) {
    const std::uint64_t later = passing_.look_at(now, ticks_of(unmeasured)) - now;
    w.parking_state.look_again =
        std::chrono::steady_clock::now() +
        std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(later) * tick_ns_));
  }
  return t;
}

void line_passers::look(const parking::line_state& line, const worker_threads& threads, std::uint64_t now) {
  seen_running_.clear();
  threads.each([&](const worker& w) {
    const worker::holding& h = w.holds();
    const int slots = h.slots.load(std::memory_order_relaxed);
    if (slots > 0)
      seen_running_.push_back({&w, slots, h.since.load(std::memory_order_relaxed),
                               ticks_of(h.predicted_ns.load(std::memory_order_relaxed))});
  });
  passing_.look(seen_running_, {line.first.who, line.first.slots, line.free + 1}, now);
}

}  // namespace troupe::detail
