// What this file is for: numbered views of the members, each agreed on by a majority of the one before.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by membership. The oldest live member of the last view proposes the next one. For each number at most one
// view is agreed, whoever proposes and whoever dies meanwhile (Lamport, "Paxos made simple", once for each number). A
// node begins with a view of itself alone; of clusters that began apart, all adopt the view with the largest rank when
// they meet, and until then each has a majority of its own. Two members have a majority only together.
//
// Up to a mesh who proposes asks all; beyond, proposals gather votes on their way (view_votes). Either counts, whoever
// goes by which: what a node promises and accepts is the same.
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
  /// What is to be sent, to whom.
  using outbox = std::vector<std::pair<node_id, membership_message>>;

  explicit views(const node_id& self) : self_(self), agreed_{1, self, {self}} {}

  // Each answers whether the agreed view has changed.

  /// The members that live, this node among them, sorted. At every heartbeat. `carried`: not all can be asked.
  bool tick(const std::vector<node_id>& live, time_point now, outbox&, bool carried = false);
  bool message(const node_id& from, const detail::view_prepare&, outbox&);
  bool message(const node_id& from, const detail::view_promise&, outbox&);
  bool message(const node_id& from, const detail::view_accept&, outbox&);
  bool message(const node_id& from, const detail::view_accepted&, outbox&);
  bool message(const node_id& from, const detail::view_agreed&, outbox&);
  bool message(const node_id& from, const detail::view_poll&, outbox&);
  bool message(const node_id& from, const detail::view_step&, outbox&);

  /// A proposal that gathers votes, for some others; null: there is none.
  const view_poll* poll() const { return votes_ ? &*votes_ : nullptr; }
  /// To one whose view has that rank, and a smaller one than this node's: what it lacks.
  void tell_behind(const node_id& to, std::uint64_t rank, outbox&) const;
  const node_view& agreed() const { return agreed_; }
  /// More than half of the agreed members live.
  bool has_majority(const std::vector<node_id>& live) const;
  /// The oldest of the agreed members that lives.
  std::optional<node_id> coordinator(const std::vector<node_id>& live) const;

 private:
  struct proposal {
    detail::view_ballot ballot{};
    time_point since{};
    std::vector<node_id> members{};
    detail::view_ballot best{};  // of what others have accepted
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
  // As one who is asked, about the number after the agreed one.
  detail::view_ballot promised_{}, accepted_in_{};
  std::vector<node_id> accepted_{};
  view_votes votes_;
  std::deque<detail::view_step> steps_;  // the last ones to the agreed view
  // As the one who proposes.
  std::optional<proposal> proposal_;
  std::uint32_t attempt_ = 0;
  std::vector<node_id> settling_;
  time_point settling_since_{};
};

}  // namespace troupe::logic
