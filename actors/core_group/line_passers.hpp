// What this file is for: tasks of a core group that use slots which the first in line for several slots gathers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "actors/core_group/parking.hpp"
#include "actors/core_group/task_queue.hpp"
#include "actors/core_group/worker.hpp"
#include "actors/core_group/worker_threads.hpp"
#include "actors/logic/scheduling/backfill.hpp"

namespace troupe::detail {

/// Bodies that have passed the line, and the decision which task may. Any thread. `tick_ns`: of the clock by which
/// bodies are timed.
class line_passers {
 public:
  explicit line_passers(double tick_ns) : tick_ns_(tick_ns), passing_(ticks_of(unmeasured)) {}

  /// Takes a task out of the queue that may use the worker's slot while the line waits for more; null: none. The
  /// worker's own slot counts as one that has gathered.
  task_record* choose(worker&, parking&, task_queue&, const worker_threads&);
  /// Notes that the body with which a worker has passed the line has ended, if there is one.
  void ended(worker&);

 private:
  // Run time assumed for a task that was never measured: it may pass the line where the line must wait this long
  // anyway.
  static constexpr std::chrono::nanoseconds unmeasured = std::chrono::milliseconds(1);
  std::uint64_t ticks_of(std::chrono::nanoseconds t) const {
    return static_cast<std::uint64_t>(static_cast<double>(t.count()) / tick_ns_);
  }
  std::uint64_t ticks_of(float ns) const { return ticks_of(std::chrono::nanoseconds(static_cast<std::int64_t>(ns))); }
  void look(const parking::line_state&, const worker_threads&, std::uint64_t now);

  const double tick_ns_;
  std::mutex lock_;          // guards the rest
  logic::backfill passing_;  // times are ticks
  std::vector<logic::backfill::holding> seen_running_;
};

}  // namespace troupe::detail
