// What this file is for: edges of the task graph go into the trace.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/graph_trace.hpp"

namespace troupe::detail {

void graph_trace::write_found_edges() {
  for (const auto& [earlier, later] : edges_) lane_.add_edge(earlier, later);
  edges_.clear();
}

}  // namespace troupe::detail
