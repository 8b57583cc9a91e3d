// The list of benchmarks: which rows exist, what they must reach, and how each is measured.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "harness.hpp"

#include <vector>

namespace bench {

std::vector<group> all_groups(const settings&);

}  // namespace bench
