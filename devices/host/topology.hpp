// What this file is for: which cores this process may use.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::devices {

/// Operating-system numbers of the cores in this thread's affinity mask, nearest neighbours first (hwloc).
std::vector<int> usable_cores();
/// min(affinity mask, cgroup CPU quota rounded up), at least 1. Never the raw core count.
int usable_core_count();
/// Returns the strictest CPU quota, in cores, of the cgroups that this process is in (v1 and v2); 0: there is none.
double core_quota();
/// Returns the vendor's name of the processor; where the system does not say, the architecture.
std::string processor_name();
/// Returns the memory of this machine, whatever this process may use of it.
std::uint64_t memory_bytes();
/// The quota in cores that a cgroup file holds: v2 `cpu.max` ("50000 100000", "max 100000"); 0 where there is none.
double parse_cpu_max(const std::string& text);

}  // namespace troupe::devices
