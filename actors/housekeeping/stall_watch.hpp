// What this file is for: asking from outside whether some core group of this process stands still beside work.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace troupe::detail {

class executor;

/// A core group is there, or goes.
void watch_for_stalls(const executor&);
void forget_stalls(const executor&);

/// Names of the core groups of all runtimes of this process that have a task that could run and a slot for it, and no
/// thread that is awake or on its way. Any thread. True of a group for a moment while work is handed over: who asks twice
/// with 100 ms in between, and hears the same name, has found a lost wake-up. Tests do.
std::vector<std::string> stalled_groups();

}  // namespace troupe::detail
