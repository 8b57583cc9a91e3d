// The list of benchmarks on accelerators: rows, targets, measurements.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "harness.hpp"

#include <string>
#include <vector>

namespace bench {

/// Whether any of these names, as the command line has them, is about accelerators; none at all means everything.
bool concerns_devices(const std::vector<std::string>& names);

/// The first accelerator of each kind this machine has; the software GPU is always one. Of which kinds there is none,
/// and why, is noted.
std::vector<std::string> first_devices();
/// Returns those of these devices that there are; the others are noted.
std::vector<std::string> only_present(const std::vector<std::string>&);

/// Rows for each of `settings::devices`.
std::vector<group> device_groups(const settings&);

}  // namespace bench
