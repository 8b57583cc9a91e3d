// What this file is for: a proposal for a view that passes from node to node, and gathers votes on its way.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by views. Between more members than are connected with each other nobody can ask all of them. So who
// proposes tells a few, who vote and tell a few; two that meet join what each has gathered, and know both. Who sees that
// more than half have accepted knows as much as who has proposed. Rejected: connecting the proposer with all (a
// thousand handshakes for each view, all at one node), and trees of relays (one that dies takes its branch's votes along,
// and has to be found out first). What votes mean is as in views: only the post is another.
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

/// What makes the second of the first, if both are views' members: the first ones without some, and others after them.
view_change change_between(const std::vector<node_id>& from, const std::vector<node_id>& to);
/// Nothing if it does not fit.
std::optional<std::vector<node_id>> changed_by(const std::vector<node_id>& members, const view_change&);

/// The newest poll that this node has seen, of the number after the agreed one.
class view_votes {
 public:
  enum class seen : std::uint8_t { old, same, better };

  void clear() { poll_.reset(); }
  void begin(const view_poll& p, std::size_t members);
  /// Joins what another has gathered. `old`: that knows less than this node does, and might be told. `better`: it is a
  /// newer one, which takes the place of what was here.
  seen join(const view_poll&, std::size_t members);
  void vote(std::size_t place);
  bool has_voted(std::size_t place) const;
  std::size_t count() const;
  /// There is something in it that is not in that one.
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
