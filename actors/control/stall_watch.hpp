// What this file is for: tells whether some core group of this process stands still although it has work.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace troupe::detail {

class executor;

/// Adds a core group to the watched ones, or takes it out.
void watch_for_stalls(const executor&);
void forget_stalls(const executor&);

/// Returns the names of the core groups of all runtimes of this process that have a task that could run and a slot for
/// it, and no thread that is awake or on its way. Any thread. A group is so for a moment while work is handed over: a
/// caller that gets the same name twice, 100 ms apart, has found a lost wake-up. Tests do this.
std::vector<std::string> stalled_groups();

}  // namespace troupe::detail
