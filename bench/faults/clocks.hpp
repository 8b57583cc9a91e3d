// Clocks that are set while work goes on.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../harness.hpp"
#include "aftermath.hpp"

#include <functional>
#include <optional>
#include <string>

namespace bench {

/// Whether the clock of this process can be set: a library that does so was loaded before all others.
bool has_own_clock();
/// Sets it by so many seconds off the machine's, if it can be.
void set_own_clock(long seconds);
/// Returns a worker's answer to "clock SECONDS"; nothing for other lines.
std::optional<std::string> answer_about_clock(const std::string& line);

/// Forward and back by an hour, here and on one of two workers: the longest time in which no task ended. Only where
/// `has_own_clock`.
aftermath clocks_are_set();
/// Runs this measurement in a process that has a clock of its own. Throws `missing` where there is none.
figures in_a_process_with_a_clock(const std::string& group, const settings&);

}  // namespace bench
