// What this file is for: when a device of unknown speed is given a task of a kernel, to find out how fast it is.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure but for the question whether a device is ready. The program waits for each of its tasks in the end, so a device
// that turns out to be a hundred times slower than the cores must not have a task while nothing else is left to do. The
// time of a trial is not known before it has been made. So its stake is the worst time that is likely, and it is made
// where that does no harm: the other executors have work for that long, or the stake is little beside the time that
// tasks of that kernel have taken so far. A device that computes on the cores takes time from them in any case, and has
// to meet both conditions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include <troupe/detail/task.hpp>

#include "actors/logic/scheduling/cost_model.hpp"

namespace troupe::logic {

/// State of the other executors that may run a task, at the time when it is to be given to one.
struct alternatives {
  bool cores = false;       ///< core groups are among them
  float run_ns = 0;         ///< of the fastest whose time is known; 0: of none
  float tasks_per_ns = 0;   ///< of all with a known time together
  std::size_t waiting = 0;  ///< tasks that no executor has room for
  double spent_ns = 0;      ///< about what tasks of that kernel and size have taken on the fastest
};

class trials {
 public:
  /// True if an executor could begin with a task of that kernel at once; one that could not is to get ready.
  using readiness = std::function<bool(std::size_t executor, const detail::kernel_info&)>;

  /// Makes a trial only where it does no harm from now on; before, it is made as soon as there is a task.
  void be_careful(readiness r) { is_ready_ = std::move(r); }

  /// Returns the nanoseconds at stake if the device is given the task, which the caller then notes in `own`; empty: the
  /// device may not be given it. `own`: the device's times of that kernel.
  std::optional<float> stake(std::size_t executor, const detail::kernel_info& k, const run_time& own, bool shares_cores,
                             float transfer_ns, const alternatives& others) const {
    if (!is_ready_ || !others.cores) return 0.0f;
    if (!is_ready_(executor, k)) return {};
    // Core groups try a new kernel themselves. Tasks that find no room there are for devices, which may be much faster.
    if (!(others.run_ns > 0)) return shares_cores || others.waiting == 0 ? std::optional<float>() : 0.0f;
    const float stake = transfer_ns + (own.seen() == 0 ? slower_max * others.run_ns : 2 * own.expected_ns(0));
    const bool is_hidden = stake * others.tasks_per_ns <= static_cast<float>(others.waiting);
    const bool is_little = own.staked_ns() + stake <= share * others.spent_ns;
    return (shares_cores ? is_hidden && is_little : is_hidden || is_little) ? std::optional(stake) : std::nullopt;
  }

 private:
  /// Factor by which a device may be slower than the fastest of the others; more is not expected.
  static constexpr float slower_max = 32;
  /// Share of the time that tasks have taken which may be staked.
  static constexpr double share = 0.05;

  readiness is_ready_;
};

}  // namespace troupe::logic
