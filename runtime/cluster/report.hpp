// What this file is for: one picture of a cluster out of what each of its members has said.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <troupe/cluster_report.hpp>

#include "actors/protocol/node.hpp"
#include "actors/wire/node_messages.hpp"

namespace troupe::detail {

/// A member as the asking node knows it, and its own description if it has answered.
struct heard_member {
  node_id id{};
  std::string name{}, address{};
  std::uint64_t incarnation = 0;
  bool is_self = false, suspect = false;
  std::optional<wire::self_descriptor> descriptor{};
};

/// Joins what both ends of each link report. For each direction the sender's figure counts, or the receiver's where the
/// sender reports none. Members that are only named by others are included; `without_link`: those that cannot have a
/// link with the asking node.
cluster_report picture_of(const std::vector<heard_member>&, const std::set<node_id>& without_link = {});
/// Returns the links of one member, as it has seen them.
std::vector<link_report> links_of(const heard_member&);

}  // namespace troupe::detail
