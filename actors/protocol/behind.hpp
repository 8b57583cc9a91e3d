// What this file is for: tasks that a device is given before those they come after have ended.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A device runs what it is given in order of its data, so a task whose unfinished predecessors are all there may be sent
// behind them, and nobody waits in between. It must not run if one of them did not: both sides count the device's
// setbacks (tasks that it was given and did not run well). The task carries the number that placement knew of; if the
// device knows of more, it gives the task back.
#pragma once

#include <cstdint>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// In task_record::marks: a node may give it back though it and all before it run well, because what it is to pull may not
/// come. Who waits for what it writes comes back with it; who only overwrites what it reads must not be sent behind it.
inline constexpr std::uint16_t mark_uncertain = 2048;

/// In the upper bits of a task's phase; zero: it comes behind nobody.
inline constexpr std::uint32_t behind_shift = 8, behind_mask = ~std::uint32_t{0} << behind_shift;

constexpr bool is_behind(std::uint32_t phase) { return (phase & behind_mask) != 0; }
constexpr std::uint32_t behind_of(std::uint32_t phase) { return phase & behind_mask; }
/// Distinguishes any two counts that are less than 2^24 - 1 apart.
constexpr std::uint32_t behind_mark(std::uint32_t setbacks) {
  return (setbacks % ((std::uint32_t{1} << (32 - behind_shift)) - 1) + 1) << behind_shift;
}

}  // namespace troupe::detail
