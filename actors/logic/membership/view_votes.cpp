// What this file is for: a proposal for a view that passes from node to node, and gathers votes on its way.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/membership/view_votes.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace troupe::logic {

namespace {

std::vector<node_id> sorted(std::vector<node_id> all) {
  std::sort(all.begin(), all.end());
  return all;
}

std::size_t bytes_for(std::size_t members) { return (members + 7) / 8; }

auto age(const view_poll& p) { return std::tie(p.ballot, p.accepting); }

}  // namespace

view_change change_between(const std::vector<node_id>& from, const std::vector<node_id>& to) {
  view_change c;
  const std::vector<node_id> before = sorted(from), after = sorted(to);
  for (std::size_t i = 0; i < from.size(); ++i)
    if (!std::binary_search(after.begin(), after.end(), from[i])) c.out.push_back(static_cast<std::uint32_t>(i));
  for (const node_id& n : to)
    if (!std::binary_search(before.begin(), before.end(), n)) c.in.push_back(n);
  return c;
}

std::optional<std::vector<node_id>> changed_by(const std::vector<node_id>& members, const view_change& c) {
  std::vector<node_id> next;
  auto out = c.out.begin();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (out != c.out.end() && *out == i)
      ++out;
    else
      next.push_back(members[i]);
  }
  if (out != c.out.end()) return std::nullopt;  // not ascending, or of a larger view
  next.insert(next.end(), c.in.begin(), c.in.end());
  return next;
}

void view_votes::begin(const view_poll& p, std::size_t members) {
  poll_ = p;
  poll_->votes.assign(bytes_for(members), 0);
}

view_votes::seen view_votes::join(const view_poll& p, std::size_t members) {
  if (p.votes.size() != bytes_for(members) || (members % 8 != 0 && p.votes.back() >> members % 8 != 0))
    return seen::same;  // malformed: no member sends that
  if (!poll_ || age(p) > age(*poll_)) {
    poll_ = p;
    return seen::better;
  }
  if (age(p) < age(*poll_)) return seen::old;
  for (std::size_t i = 0; i < p.votes.size(); ++i) poll_->votes[i] |= p.votes[i];
  if (p.best > poll_->best) {
    poll_->best = p.best;
    poll_->change = p.change;
  }
  return seen::same;
}

void view_votes::vote(std::size_t index) { poll_->votes[index / 8] |= static_cast<std::uint8_t>(1u << index % 8); }

bool view_votes::has_voted(std::size_t index) const { return (poll_->votes[index / 8] >> index % 8 & 1) != 0; }

std::size_t view_votes::count() const {
  std::size_t n = 0;
  for (const std::uint8_t v : poll_->votes) n += static_cast<std::size_t>(std::popcount(v));
  return n;
}

bool view_votes::has_more_than(const view_poll& p) const {
  if (!poll_ || age(*poll_) < age(p)) return false;
  if (age(*poll_) > age(p) || poll_->best > p.best) return true;
  for (std::size_t i = 0; i < std::min(p.votes.size(), poll_->votes.size()); ++i)
    if ((poll_->votes[i] & ~p.votes[i]) != 0) return true;
  return false;
}

}  // namespace troupe::logic
