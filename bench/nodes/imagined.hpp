// Nodes that are only imagined: the real placement, the real membership, no processes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace bench {

/// More have no place among the executors of a runtime, the cores being one of them.
int imagined_nodes_max();
/// From the submission of a task to its retirement, without all that executors do: each updates one of 1,024 arrays,
/// and any of the nodes may run it.
double ns_to_place_among(int nodes, int tasks);

/// Bytes a second that the node sends which sends most.
struct traffic {
  double quiet = 0;     ///< nothing happens
  double changing = 0;  ///< one has died, another one joins
};
traffic traffic_of_imagined(int nodes);

}  // namespace bench
