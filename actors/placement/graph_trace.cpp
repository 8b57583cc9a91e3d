// What this file is for: edges of the task graph go into the trace.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/graph_trace.hpp"

#include "actors/protocol/successors.hpp"

namespace troupe::detail {

void graph_trace::write_found_edges() {
  for (const auto& [earlier, later] : edges_) lane_.add_edge(earlier, later);
  edges_.clear();
}

void graph_trace::note_ordered(const task_record& t) {
  if (t.marks & mark_chunk) {
    chunks_[successor::from(t.successors[0]).task].push_back(t.sequence);
  } else if (t.kind == task_kind::join) {
    if (const auto some = chunks_.extract(&t))
      for (const std::uint64_t chunk : some.mapped()) lane_.add_edge(chunk, t.sequence);
  }
}

}  // namespace troupe::detail
