// What this file is for: members: what this node has of each of them: shown, linked, live, connected.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "actors/logic/membership/membership.hpp"

namespace troupe::logic {

void membership::show(member& m, node_end why) {
  const bool is = m.met || (!is_mesh_ && m.known && !m.record.is_out());
  if (is == m.shown) return;
  m.shown = is;
  live_.reset();
  if (is)
    actions_.push_back(came{m.record.node});
  else
    actions_.push_back(went{m.record.node, why});
}

/// Notes which use the peer has for the session.
void membership::link(member& m, time_point now, detail::link_use use) {
  if (use == detail::link_use::none) return;
  m.session.heard_link = true;
  if (use == detail::link_use::work && !std::exchange(m.watch.wanted, true)) m.watch.since = now;
}

/// Joins the member once both sides have said that the session is a link.
void membership::link(member& m) {
  if (m.met || !m.session.greeted || m.record.is_out()) return;
  if ((m.watch.wanted || m.session.heard_link) && !std::exchange(m.session.said_link, true))
    say(m.record.node, detail::node_link{use_of(m)});
  if (m.session.said_link && m.session.heard_link) join(m);
}

const std::vector<node_id>& membership::live() const {
  if (live_) return *live_;
  std::vector<node_id>& all = live_.emplace();
  if (!self_.is_out()) all.push_back(self_.node);
  for (const auto& [n, m] : members_)
    if (m.shown) all.push_back(n);
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<node_id> membership::attended() const {
  std::vector<node_id> all;
  if (is_mesh_) {
    for (const auto& [n, m] : members_) all.push_back(n);
  } else {
    for (const node_id& n : active_)
      if (members_.contains(n)) all.push_back(n);
  }
  return all;
}

std::uint64_t membership::own_time(time_point now) const {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now - began_).count()) + 1;
}

/// Returns random connected members, without those that are suspect themselves.
std::vector<node_id> membership::some_connected(std::size_t count, const node_id& but) {
  std::vector<node_id> some;
  for (const node_id& n : attended())
    if (const member& m = members_.at(n); n != but && is_connected(m) && !m.doubt.stands) some.push_back(n);
  for (std::size_t i = 0; i < count && i < some.size(); ++i)
    std::swap(some[i], some[i + random_() % (some.size() - i)]);
  some.resize(std::min(count, some.size()));
  return some;
}

void membership::join(member& m) {
  m.met = true;
  m.doubt.stands = false;
  m.challenged.reset();
  if (m.record.claim == node_claim::suspect) m.record.claim = node_claim::live;
  dials_.proved(m.record.node);
  show(m, node_end::said);
  actions_.push_back(joined{m.record.node});
  turns_.clear();
}

}  // namespace troupe::logic
