// What this file is for: a clock of this process that can be set, where the machine's is not to be touched.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// clock.cpp is part of a program, or of a library that is loaded before all others (LD_PRELOAD): which then finds
// `troupe_test_set_clock` by dlsym. Never of one that others link: it stands before the C library.
#pragma once

#include <chrono>

namespace test {

/// The time of day is off by so much from now on: to all that asks in this process, libraries too.
void set_clock(std::chrono::seconds off);

}  // namespace test

extern "C" void troupe_test_set_clock(long seconds);
