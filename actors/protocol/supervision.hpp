// What this file is for: what happens when an actor fails: the rows of the supervision table.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// From          | message                                   | may repeat | may be lost
// actor         | failed: it has stopped, for this reason   | yes        | after the end of the runtime
// supervisor    | restart: go on, or report a failure again | yes        | no
// supervisor    | withdraw: end for good                    | no         | no
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace troupe::detail {

enum class actor_kind : std::uint8_t {
  placement,
  core_group,
  gpu,
  remote_node,
  node_service,
  disk,
  cluster,
  trace_observer,
  housekeeper,
};

/// The supervisor's decision about an actor that has failed.
enum class verdict : std::uint8_t {
  restart,      ///< the actor begins anew
  withdraw,     ///< the actor ends; what it was to do is done by others, or fails
  end_runtime,  ///< nothing can go on without it: all tasks that have not begun fail
};

/// A row of the supervision table. The table in docs/architecture.md says the same in words.
struct supervision_row {
  actor_kind kind;
  std::string_view name;
  int restarts;  // so often it is restarted
  verdict then;  // what is done about the failure after these
};

inline constexpr std::array supervision_table{
    supervision_row{actor_kind::placement, "placement", 0, verdict::end_runtime},
    supervision_row{actor_kind::core_group, "core group", 8, verdict::end_runtime},
    supervision_row{actor_kind::gpu, "gpu", 3, verdict::withdraw},
    supervision_row{actor_kind::remote_node, "remote node", 0, verdict::withdraw},
    supervision_row{actor_kind::node_service, "node service", 0, verdict::withdraw},
    supervision_row{actor_kind::disk, "disk", 3, verdict::withdraw},
    supervision_row{actor_kind::cluster, "cluster", 0, verdict::withdraw},
    supervision_row{actor_kind::trace_observer, "trace observer", 0, verdict::withdraw},
    supervision_row{actor_kind::housekeeper, "housekeeper", 100, verdict::withdraw},
};

constexpr const supervision_row& row_of(actor_kind k) { return supervision_table[static_cast<std::size_t>(k)]; }

/// Returns what is done about an actor that has failed so often, this time included.
constexpr verdict verdict_on(actor_kind k, int failures) {
  const supervision_row& r = row_of(k);
  return failures <= r.restarts ? verdict::restart : r.then;
}

}  // namespace troupe::detail
