// The list of faults: rows, targets, what is done to which process.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../harness.hpp"

#include <memory>
#include <vector>

namespace bench {

/// Returns the groups of faults; those that need a network of their own only where there can be one, else that is
/// noted.
std::vector<group> fault_groups(const settings&);
/// Troupe alone.
std::vector<std::unique_ptr<contender>> fault_contenders();

}  // namespace bench
