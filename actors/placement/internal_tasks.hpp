// What this file is for: tasks that placement makes itself (copies, spills, loans) get their place in the order.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/task_graph.hpp"

namespace troupe::detail {

/// Numbers an internal task, which was not submitted, and counts it as a user of its arrays. With placement's turn.
inline void number(logic::task_graph& graph, task_record& t) {
  t.sequence = graph.next_number();
  t.id = t.sequence;
  t.pending = 0;
  for (int i = 0; i < t.access_count; ++i) ++t.accesses[i].array->users;
}

}  // namespace troupe::detail
