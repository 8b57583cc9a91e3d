// What this file is for: what nodes tell each other about which of them belong to the cluster.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Every message here may be repeated, come late or be lost with a session; none needs an answer for what was said to
// hold. How they look as bytes: actors/wire/membership_messages.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

#include "actors/protocol/node.hpp"

namespace troupe::detail {

/// In the order of severity.
enum class node_claim : std::uint8_t { live, suspect, gone, left };

/// A statement about a node. The larger (incarnation, round, claim) wins, so that all that hear the same say the same
/// in the end, in whatever order they hear it. A process has one incarnation for as long as it lives; to refute what is
/// said of it, it raises its round. Why two numbers: a process that refutes must not look like one that was restarted.
struct node_record {
  node_id node{};
  std::uint64_t incarnation = 0;
  std::uint32_t round = 0;
  node_claim claim = node_claim::live;
  std::vector<node_address> addresses{};

  bool operator==(const node_record&) const = default;
  bool is_out() const { return claim >= node_claim::gone; }
};

inline bool wins_over(const node_record& a, const node_record& b) {
  return std::tie(a.incarnation, a.round, a.claim) > std::tie(b.incarnation, b.round, b.claim);
}

/// The members on which a majority of those before has agreed, the oldest first.
struct node_view {
  std::uint64_t number = 0;
  node_id founder{};  ///< views of clusters that began apart have nothing to do with each other
  std::vector<node_id> members{};

  bool operator==(const node_view&) const = default;
  bool has(const node_id& n) const { return std::find(members.begin(), members.end(), n) != members.end(); }
  /// Rank of a view: of two views the one with the larger rank is kept; within a cluster that is the later.
  std::uint64_t rank() const {
    return number << 24 | std::uint64_t{founder.bytes[0]} << 16 | std::uint64_t{founder.bytes[1]} << 8 |
           founder.bytes[2];
  }
};

/// Use of a session to the node that says so. Once both ends have said `idle` or `work` it is a link.
enum class link_use : std::uint8_t {
  none,  ///< only to look after the peer
  idle,
  work,  ///< not to be ended by the peer either
};

/// The first on a session, from both sides.
struct node_hello {
  node_record self{};
  bool knows_you = false;               ///< the peer is a member already, and this session goes on where one has ended
  std::optional<node_record> of_you{};  ///< what has to be refuted first
  std::uint32_t members = 0;
  std::uint64_t digest = 0;  ///< of what is known of the members
  link_use link = link_use::idle;
};

/// Every heartbeat, to those that are watched; to others a probe, and its answer.
struct node_beat {
  bool answer = false;  ///< an answer is wanted
  std::uint64_t digest = 0;
  std::uint64_t view = 0;  ///< rank of the last agreed one
  std::vector<node_record> news{};
  std::uint32_t deaf_ms = 0;  ///< the sender has heard nothing of the peer for so long; 0: for less than two heartbeats
  /// When it was sent, and the last such number of the peer's that has come: by the clocks of the nodes that say it
  /// first, in milliseconds. What a connection delivers late shows by this that it is old. 0: not said.
  std::uint64_t sent = 0, heard = 0;
};

/// Asks a third for a sign of life of a node; it answers once it has heard of that node, or never.
struct node_probe {
  node_id target{};
};
struct node_alive {
  node_id target{};
};

/// Records that have changed, or all.
struct node_news {
  bool all = false;   ///< everything that the sender knows
  bool want = false;  ///< and the peer's everything is wanted
  std::vector<node_record> records{};
};

// ---- beyond a mesh --------------------------------------------------------------------------------------------------

/// The session is a link from now on; or there is work with the peer now. The peer answers with the same, unless it has
/// said so before.
struct node_link {
  link_use use = link_use::idle;
};
/// The sender ends the session because it has no use for it: nobody is suspect for that.
struct node_rest {};
/// Digests of what the sender knows, each of the nodes whose ids fall to it. The answer are records of those that
/// differ.
struct node_sums {
  bool want = false;  ///< and the sums of the peer
  std::vector<std::uint64_t> sums{};
};

// ---- views ----------------------------------------------------------------------------------------------------------

/// A proposal for a view, as in Paxos with one decision for each number: larger ballots win.
struct view_ballot {
  std::uint32_t attempt = 0;
  node_id proposer{};

  auto operator<=>(const view_ballot&) const = default;
};
/// The oldest live member to those of the last view: what have you accepted for the one after it?
struct view_prepare {
  std::uint64_t number = 0;
  node_id founder{};
  view_ballot ballot{};
};
struct view_promise {
  std::uint64_t number = 0;
  view_ballot ballot{};
  view_ballot accepted_in{};
  std::vector<node_id> accepted{};  ///< empty: nothing
};
struct view_accept {
  std::uint64_t number = 0;
  node_id founder{};
  view_ballot ballot{};
  std::vector<node_id> members{};
};
struct view_accepted {
  std::uint64_t number = 0;
  view_ballot ballot{};
};
/// The view that a majority has accepted. Sent to everybody, and to a node that is behind.
struct view_agreed {
  node_view view{};
};

/// Difference between a view and the next: indices of members that leave, ascending, and ids of new ones.
struct view_change {
  std::vector<std::uint32_t> out{};
  std::vector<node_id> in{};

  bool operator==(const view_change&) const = default;
};
/// Beyond a mesh votes are not sent to the proposer but gathered on the way, by the nodes that pass the proposal on: a
/// bit for each member of the last view that has promised, or accepted.
struct view_poll {
  std::uint64_t number = 0;
  node_id founder{};
  view_ballot ballot{};
  bool accepting = false;
  view_ballot best{};    ///< while promises are gathered: the largest in which one of those has accepted something
  view_change change{};  ///< and what that was; then, what is to be accepted
  std::vector<std::uint8_t> votes{};
};
/// The step to a view, sent to a node that has the view before it.
struct view_step {
  std::uint64_t number = 0;
  node_id founder{};
  view_change change{};
};

using membership_message =
    std::variant<node_hello, node_beat, node_probe, node_alive, node_news, view_prepare, view_promise, view_accept,
                 view_accepted, view_agreed, node_link, node_rest, node_sums, view_poll, view_step>;

}  // namespace troupe::detail
