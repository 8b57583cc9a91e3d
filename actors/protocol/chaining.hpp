// What this file is for: tasks that a device is given before those they come after have ended.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A device runs what it is given in order of its data, so a task whose unfinished predecessors are all there may be
// sent behind them, without a wait in between. The task must not run if one of them did not: both sides count the tasks
// that the device was given and did not run well (its failure epoch). The task carries the number that placement knew
// of; if the device knows of more, it gives the task back.
#pragma once

#include <cstdint>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// In task_record::marks: the node may return this task without running it, because a pull from another node fails.
/// Only tasks that read its output (they are returned with it) may be sent behind it, none that only overwrite its
/// input.
inline constexpr std::uint16_t mark_uncertain = 2048;

/// Bits of a task's phase that hold `epoch_mark` of the failure epoch it was sent with; zero: it was sent behind no
/// task.
inline constexpr std::uint32_t epoch_shift = 8, epoch_mask = ~std::uint32_t{0} << epoch_shift;

constexpr bool is_chained(std::uint32_t phase) { return (phase & epoch_mask) != 0; }
constexpr std::uint32_t epoch_of(std::uint32_t phase) { return phase & epoch_mask; }
/// Returns the mark of a failure epoch, never zero. Marks differ for any two that are less than 2^24 - 1 apart.
constexpr std::uint32_t epoch_mark(std::uint32_t epoch) {
  return (epoch % ((std::uint32_t{1} << (32 - epoch_shift)) - 1) + 1) << epoch_shift;
}

}  // namespace troupe::detail
