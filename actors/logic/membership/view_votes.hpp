// What this file is for: a proposal for a view that passes from node to node, and gathers votes on its way.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by views. With more members than are connected with each other, no member can ask all. So the proposer
// tells a few members, which vote and tell a few more; two polls that meet are joined, and both members know all their
// votes. A member that sees that more than half have accepted knows as much as the proposer. Rejected: connecting the
// proposer with all (a thousand handshakes for each view, all at one node), and trees of relays (one that dies takes
// its branch's votes along, and has to be found out first). Votes mean the same as in views: only their transport
// differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "actors/protocol/membership.hpp"

namespace troupe::logic {

using detail::node_id;
using detail::view_change;
using detail::view_poll;

/// Returns the change that makes the second list of the first, if both are views' members: the first without some, and
/// others after them.
view_change change_between(const std::vector<node_id>& from, const std::vector<node_id>& to);
/// Returns the members after the change; nothing if it does not fit.
std::optional<std::vector<node_id>> changed_by(const std::vector<node_id>& members, const view_change&);

/// Newest poll that this node has seen, for the view number after the agreed one.
class view_votes {
 public:
  enum class seen : std::uint8_t { old, same, better };

  void clear() { poll_.reset(); }
  void begin(const view_poll& p, std::size_t members);
  /// Joins the votes that another member has gathered. `old`: that poll is older than this node's, and its sender might
  /// be told. `better`: it is newer and replaces the one here.
  seen join(const view_poll&, std::size_t members);
  void vote(std::size_t index);
  bool has_voted(std::size_t index) const;
  std::size_t count() const;
  /// True if this poll has something that `p` does not have.
  bool has_more_than(const view_poll&) const;

  explicit operator bool() const { return poll_.has_value(); }
  view_poll& operator*() { return *poll_; }
  const view_poll& operator*() const { return *poll_; }
  view_poll* operator->() { return &*poll_; }
  const view_poll* operator->() const { return &*poll_; }

 private:
  std::optional<view_poll> poll_;
};

}  // namespace troupe::logic
