// What this file is for: numbered views of the members, each agreed on by a majority of the one before.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by membership. The oldest live member of the last view proposes the next one. For each number at most one
// view is agreed, whichever members propose or die meanwhile (Lamport, "Paxos made simple", once for each number). A
// node begins with a view of itself alone; of clusters that began apart, all adopt the view with the largest rank when
// they meet, and until then each has a majority of its own. Two members have a majority only together.
//
// In a mesh the proposer asks all members; beyond, proposals gather votes on their way (view_votes). Both ways can be
// mixed: a node's promises and acceptances are the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "actors/logic/membership/view_votes.hpp"
#include "actors/protocol/membership.hpp"

namespace troupe::logic {

using detail::membership_message;
using detail::node_id;
using detail::node_view;

class views {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using milliseconds = std::chrono::milliseconds;
  /// Messages to send, with their receivers.
  using outbox = std::vector<std::pair<node_id, membership_message>>;

  explicit views(const node_id& self) : self_(self), agreed_{1, self, {self}} {}

  // tick() and message() return true if the agreed view has changed.

  /// Proposes a view if it is this node's turn; called at every heartbeat. `live`: the live members with this node,
  /// sorted. `carried`: not all members can be asked.
  bool tick(const std::vector<node_id>& live, time_point now, outbox&, bool carried = false);
  bool message(const node_id& from, const detail::view_prepare&, outbox&);
  bool message(const node_id& from, const detail::view_promise&, outbox&);
  bool message(const node_id& from, const detail::view_accept&, outbox&);
  bool message(const node_id& from, const detail::view_accepted&, outbox&);
  bool message(const node_id& from, const detail::view_agreed&, outbox&);
  bool message(const node_id& from, const detail::view_poll&, outbox&);
  bool message(const node_id& from, const detail::view_step&, outbox&);

  /// Returns the proposal that gathers votes, to pass on to some others; null: there is none.
  const view_poll* poll() const { return votes_ ? &*votes_ : nullptr; }
  /// Sends what it lacks to a member whose view has that rank, smaller than this node's.
  void tell_behind(const node_id& to, std::uint64_t rank, outbox&) const;
  const node_view& agreed() const { return agreed_; }
  /// True if more than half of the agreed members are live.
  bool has_majority(const std::vector<node_id>& live) const;
  /// Returns the oldest agreed member that is live.
  std::optional<node_id> coordinator(const std::vector<node_id>& live) const;

 private:
  struct proposal {
    detail::view_ballot ballot{};
    time_point since{};
    std::vector<node_id> members{};
    detail::view_ballot best{};  // the newest ballot in which others have accepted a view
    std::set<node_id> promised{}, accepted{};
    bool accepting = false;
  };
  std::vector<node_id> wanted(const std::vector<node_id>& live, std::size_t in_max) const;
  void vote();
  bool gather();
  bool is_majority(std::size_t n) const { return 2 * n > agreed_.members.size(); }
  bool adopt(const node_view&);
  bool to_members(const membership_message&, outbox&);

  const node_id self_;
  node_view agreed_;
  // State as a voter, about the number after the agreed one.
  detail::view_ballot promised_{}, accepted_in_{};
  std::vector<node_id> accepted_{};
  view_votes votes_;
  std::deque<detail::view_step> steps_;  // the last steps to the agreed view
  // State as the proposer.
  std::optional<proposal> proposal_;
  std::uint32_t attempt_ = 0;
  std::vector<node_id> candidate_;
  time_point candidate_since_{};
};

}  // namespace troupe::logic
