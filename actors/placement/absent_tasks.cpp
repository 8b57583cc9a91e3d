// What this file is for: what a task that no executor can run is told about nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/absent_tasks.hpp"

#include "actors/execution/graph_part.hpp"
#include "actors/logic/scheduling/scope.hpp"

namespace troupe::detail {

std::string absent_tasks::what_has_gone(const task_record& t) const {
  const std::string named = t.extra ? logic::nodes_named_in(t.extra->options.where) : std::string();
  const std::string waits = is_graph_part(t) ? "; record the graph again when its nodes are there"
                                             : "; task_options::executor_wait makes it wait for one that comes";
  if (!named.empty()) return ": of its scope (" + named + ") nobody is there" + waits;
  return last_gone_.empty() ? std::string() : ": node " + last_gone_ + " has gone" + waits;
}

}  // namespace troupe::detail
