// What this file is for: a clock of this process that a test may set, where the machine's is not to be touched.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

namespace test {

/// The time of day is off by so much from now on: to all that asks in this process, libraries too.
void set_clock(std::chrono::seconds off);

}  // namespace test
