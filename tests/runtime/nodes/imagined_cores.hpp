// What this file is for: a core group without threads: bodies run for real, and take imagined time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "actors/core_group/core_group.hpp"

namespace test {

using namespace troupe::detail;

/// The time that a group of cores lives in.
struct imagined_time {
  /// Calls back after that time, if the process still runs then.
  std::function<void(std::chrono::nanoseconds, std::function<void()>)> later;
  /// How long the next body takes, and whether it looks at its data at the beginning of that time or at the end.
  std::function<std::chrono::nanoseconds()> duration;
  std::function<bool()> is_early;
};

/// Makes such a group.
std::shared_ptr<core_group> make_imagined_cores(core_group_options, placement&, wait_table&, runtime_state&,
                                                imagined_time);
/// True if no task is in flight.
bool is_quiet(placement&);

}  // namespace test
