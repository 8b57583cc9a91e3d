// What this file is for: numbered views of the members, each agreed on by a majority of the one before.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/membership/views.hpp"

#include <algorithm>

namespace troupe::logic {

namespace {

constexpr views::milliseconds stable_for{500};  // changes within this time become one view
constexpr views::milliseconds patience{1000}, patience_carried{4000};
constexpr std::size_t in_carried_max = 256;  // new members in one view: each of them is named to all members
constexpr std::size_t steps_max = 8;

bool is_in(const std::vector<node_id>& sorted, const node_id& n) {
  return std::binary_search(sorted.begin(), sorted.end(), n);
}

}  // namespace

std::optional<node_id> views::coordinator(const std::vector<node_id>& live) const {
  for (const node_id& n : agreed_.members)
    if (is_in(live, n)) return n;
  return std::nullopt;
}

bool views::has_majority(const std::vector<node_id>& live) const {
  return is_majority(static_cast<std::size_t>(
      std::count_if(agreed_.members.begin(), agreed_.members.end(), [&](const node_id& n) { return is_in(live, n); })));
}

std::vector<node_id> views::wanted(const std::vector<node_id>& live, std::size_t in_max) const {
  std::vector<node_id> next, members = agreed_.members;
  for (const node_id& n : agreed_.members)
    if (is_in(live, n)) next.push_back(n);
  std::sort(members.begin(), members.end());
  std::size_t in = 0;
  for (const node_id& n : live)
    if (in < in_max && !is_in(members, n)) ++in, next.push_back(n);
  return next;
}

bool views::tick(const std::vector<node_id>& live, time_point now, outbox& out, bool carried) {
  if (coordinator(live) != self_ || !has_majority(live)) {
    proposal_.reset();
    candidate_.clear();
    return false;
  }
  std::vector<node_id> next = wanted(live, carried ? in_carried_max : live.size());
  if (next == agreed_.members) {
    proposal_.reset();
    return false;
  }
  if (next != candidate_) {
    candidate_ = std::move(next);
    candidate_since_ = now;
  }
  if (now - candidate_since_ < stable_for) return false;
  if (proposal_ && now - proposal_->since < (carried ? patience_carried : patience)) return false;
  attempt_ = std::max(attempt_, promised_.attempt) + 1;
  proposal_.emplace();
  proposal_->ballot = {attempt_, self_};
  proposal_->since = now;
  proposal_->members = candidate_;
  if (carried) {
    votes_.begin({agreed_.number + 1, agreed_.founder, proposal_->ballot}, agreed_.members.size());
    vote();
    return gather();
  }
  return to_members(detail::view_prepare{agreed_.number + 1, agreed_.founder, proposal_->ballot}, out);
}

/// Sends the message to all members, to this node as if it had come over a wire.
bool views::to_members(const membership_message& m, outbox& out) {
  const std::vector<node_id> members = agreed_.members;  // adopting a view may change it on the way
  for (const node_id& n : members)
    if (n != self_) out.emplace_back(n, m);
  if (const auto* p = std::get_if<detail::view_prepare>(&m)) return message(self_, *p, out);
  return message(self_, std::get<detail::view_accept>(m), out);
}

bool views::message(const node_id& from, const detail::view_prepare& m, outbox& out) {
  if (m.number != agreed_.number + 1 || m.founder != agreed_.founder || !agreed_.has(from)) return false;
  promised_ = std::max(promised_, m.ballot);
  const detail::view_promise answer{m.number, promised_, accepted_in_, accepted_};
  if (from == self_) return message(self_, answer, out);
  out.emplace_back(from, answer);
  return false;
}

bool views::message(const node_id& from, const detail::view_promise& m, outbox& out) {
  if (!proposal_ || m.number != agreed_.number + 1) return false;
  if (m.ballot > proposal_->ballot) attempt_ = std::max(attempt_, m.ballot.attempt);  // the next attempt will be larger
  if (m.ballot != proposal_->ballot || proposal_->accepting || !agreed_.has(from)) return false;
  proposal_->promised.insert(from);
  if (!m.accepted.empty() && m.accepted_in > proposal_->best) {
    proposal_->best = m.accepted_in;
    proposal_->members = m.accepted;
  }
  if (!is_majority(proposal_->promised.size())) return false;
  proposal_->accepting = true;
  return to_members(detail::view_accept{m.number, agreed_.founder, proposal_->ballot, proposal_->members}, out);
}

bool views::message(const node_id& from, const detail::view_accept& m, outbox& out) {
  if (m.number != agreed_.number + 1 || m.founder != agreed_.founder || !agreed_.has(from) || m.ballot < promised_ ||
      m.members.empty())
    return false;
  promised_ = accepted_in_ = m.ballot;
  accepted_ = m.members;
  const detail::view_accepted answer{m.number, m.ballot};
  if (from == self_) return message(self_, answer, out);
  out.emplace_back(from, answer);
  return false;
}

bool views::message(const node_id& from, const detail::view_accepted& m, outbox& out) {
  if (!proposal_ || m.number != agreed_.number + 1 || m.ballot != proposal_->ballot || !agreed_.has(from)) return false;
  proposal_->accepted.insert(from);
  if (!is_majority(proposal_->accepted.size())) return false;
  const node_view next{m.number, agreed_.founder, proposal_->members};
  std::set<node_id> to(agreed_.members.begin(), agreed_.members.end());
  to.insert(next.members.begin(), next.members.end());
  adopt(next);
  for (const node_id& n : to)
    if (n != self_) out.emplace_back(n, detail::view_agreed{next});
  return true;
}

bool views::message(const node_id&, const detail::view_agreed& m, outbox&) {
  const node_view& v = m.view;
  if (v.members.empty() || std::tie(v.number, v.founder) <= std::tie(agreed_.number, agreed_.founder)) return false;
  return adopt(v);
}

// ---- carried votes --------------------------------------------------------------------------------------------------

bool views::message(const node_id& from, const detail::view_poll& m, outbox& out) {
  if (m.founder != agreed_.founder) return false;
  if (m.number <= agreed_.number) {
    const node_view before{m.number - 1, m.founder, {}};
    tell_behind(from, before.rank(), out);
    return false;
  }
  if (m.number != agreed_.number + 1 || (m.accepting && !changed_by(agreed_.members, m.change))) return false;
  if (votes_.join(m, agreed_.members.size()) == view_votes::seen::better)
    attempt_ = std::max(attempt_, m.ballot.attempt);
  if (!votes_) return false;
  vote();
  if (votes_.has_more_than(m)) out.emplace_back(from, *votes_);
  return gather();
}

/// Casts this node's vote in the poll, if it may and has not yet.
void views::vote() {
  view_poll& p = *votes_;
  const auto self = std::find(agreed_.members.begin(), agreed_.members.end(), self_);
  if (self == agreed_.members.end() || p.ballot < promised_) return;
  const auto index = static_cast<std::size_t>(self - agreed_.members.begin());
  if (votes_.has_voted(index)) return;
  promised_ = p.ballot;
  if (p.accepting) {
    accepted_in_ = p.ballot;
    accepted_ = *changed_by(agreed_.members, p.change);
  } else if (!accepted_.empty() && accepted_in_ > p.best) {
    p.best = accepted_in_;
    p.change = change_between(agreed_.members, accepted_);
  }
  votes_.vote(index);
}

/// Goes on if there are enough votes. True if the agreed view has changed.
bool views::gather() {
  if (!is_majority(votes_.count())) return false;
  view_poll& p = *votes_;
  if (!p.accepting) {
    if (!proposal_ || proposal_->accepting || proposal_->ballot != p.ballot) return false;
    proposal_->accepting = true;
    if (p.best == detail::view_ballot{}) p.change = change_between(agreed_.members, proposal_->members);
    if (!changed_by(agreed_.members, p.change)) return false;
    const view_poll next{p.number, p.founder, p.ballot, true, {}, p.change, {}};
    votes_.begin(next, agreed_.members.size());
    vote();
    return gather();
  }
  const auto members = changed_by(agreed_.members, p.change);
  return members && !members->empty() && adopt({p.number, p.founder, *members});
}

bool views::message(const node_id&, const detail::view_step& m, outbox&) {
  if (m.founder != agreed_.founder || m.number != agreed_.number + 1) return false;
  const auto members = changed_by(agreed_.members, m.change);
  return members && !members->empty() && adopt({m.number, m.founder, *members});
}

void views::tell_behind(const node_id& to, std::uint64_t rank, outbox& out) const {
  const auto has = [&](const detail::view_step& s) { return node_view{s.number - 1, s.founder, {}}.rank() == rank; };
  const auto first = std::find_if(steps_.begin(), steps_.end(), has);
  for (auto s = first; s != steps_.end(); ++s) out.emplace_back(to, *s);
  if (first == steps_.end()) out.emplace_back(to, detail::view_agreed{agreed_});
}

bool views::adopt(const node_view& v) {
  const bool follows = v.founder == agreed_.founder && v.number == agreed_.number + 1;
  view_change c;
  if (follows) c = change_between(agreed_.members, v.members);
  if (follows && changed_by(agreed_.members, c) == v.members) {
    steps_.push_back({v.number, v.founder, std::move(c)});
    if (steps_.size() > steps_max) steps_.pop_front();
  } else {
    steps_.clear();
  }
  agreed_ = v;
  promised_ = accepted_in_ = {};
  accepted_.clear();
  proposal_.reset();
  candidate_.clear();
  votes_.clear();
  return true;
}

}  // namespace troupe::logic
