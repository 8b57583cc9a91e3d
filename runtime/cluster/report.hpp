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

/// A member as the one who asks knows it, and what it has said of itself, if it has.
struct heard_member {
  node_id id{};
  std::string name{}, address{};
  std::uint64_t incarnation = 0;
  bool is_self = false, suspect = false;
  std::optional<wire::self_card> card{};
};

/// Both ends of a link tell of it. Of what was sent in one direction the sender is believed, and the receiver where the
/// sender says nothing. Who is only named by others is there, too; `without_link`: those who can have none with who asks.
cluster_report picture_of(const std::vector<heard_member>&, const std::set<node_id>& without_link = {});
/// The links of one member, as it has seen them.
std::vector<link_report> links_of(const heard_member&);

}  // namespace troupe::detail
