// The list of benchmarks between nodes: rows, targets, measurements.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../harness.hpp"

#include <memory>
#include <vector>

namespace bench {

/// Rows over loopback, and over veth where there can be such a pair; else that is noted.
std::vector<group> node_groups(const settings&);
std::vector<std::unique_ptr<contender>> node_contenders();

}  // namespace bench
