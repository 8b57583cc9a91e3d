// What this file is for: how much work a node has, as it tells other nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace troupe::detail {

/// The work of the executors of this node.
struct load_report {
  int slots = 0, busy = 0;
  std::uint64_t queued = 0;                      // ready tasks that have not begun
  std::vector<std::chrono::nanoseconds> others;  // for each owner: predicted time of all others' work
};

}  // namespace troupe::detail
