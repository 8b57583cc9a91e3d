// What this file is for: building a part of a graph as its owner describes it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "actors/execution/graph_part.hpp"
#include "actors/wire/graph_messages.hpp"

namespace troupe::detail {

class engine;

/// Builds a part of a graph of `owner`; what it sends goes to `exit`. Throws error(protocol_error) for what does not fit
/// together, error(no_executor) for a kernel that is not offered here, error(not_supported) for a reduction.
std::shared_ptr<recorded_graph> make_part(engine&, const node_id& owner, graph_part::outlet& exit,
                                          const wire::graph_definition&);

}  // namespace troupe::detail
