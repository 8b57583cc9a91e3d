// What this file is for: how much of the machine is in use, as the operating system says.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe::devices {

/// Memory that this process has in the machine's; 0 where the system does not say.
std::uint64_t resident_bytes();
/// Processes of this machine that run or want to, over the last minute; 0 where the system does not say.
double load_average();

}  // namespace troupe::devices
