// What this file is for: members: what nodes say of each other, and how it spreads.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Changes are told with the next heartbeats, to a few peers that tell a few more. Changes that a node misses that way
// are found by comparing digests: two nodes that know different things tell each other everything, at most once in a
// while. Beyond a mesh they first find out where they differ (record_sums).
#include <bit>
#include <utility>

#include "actors/logic/membership/membership.hpp"

namespace troupe::logic {

using namespace std::chrono_literals;
using detail::node_news;

void membership::merge(const node_record& r, time_point now) {
  if (r.node == self_.node) return about_me(r);
  const auto found = members_.find(r.node);
  if (found == members_.end()) {
    if (members_.size() >= options_.nodes) return;
    member& m = members_[r.node];
    m.known = true;
    m.record = r;
    m.ended = now;
    changed(m);
    if (!r.is_out()) revive(m, r, now);
    return;
  }
  member& m = found->second;
  if (!wins_over(r, m.record)) return;
  if (r.incarnation > m.record.incarnation) {
    if (m.known && !m.record.is_out()) {
      end(m, node_end::replaced, node_claim::gone, now);
    } else if (m.session.up) {
      actions_.push_back(close{r.node});
      m.session.up = m.session.greeted = false;
    }
    m.record = r;
    m.known = true;
    m.ended = now;
    changed(m);
    if (!r.is_out()) revive(m, r, now);
    return;
  }
  if (r.is_out()) return merge_out(m, r, now);
  if (m.record.is_out() || !m.known) return revive(m, r, now);

  const bool is_later = r.round > m.record.round;
  m.record.round = r.round;
  if (!r.addresses.empty()) m.record.addresses = r.addresses;
  changed(m);
  if (is_later) m.signs.told = now;  // only the member itself raises its round
  if (r.claim == node_claim::live) {
    m.record.claim = node_claim::live;
    spread(r.node);
  } else if (is_fresh(m, now)) {
    if (is_later) m.record.claim = node_claim::live;
    challenge(m, r);
  } else {
    m.record.claim = node_claim::suspect;
    doubt(m, now);
    if (is_connected(m)) {
      say(r.node, beat_for(m, true, now));
      if (m.signs.asked <= m.signs.heard) m.signs.asked = now;
    }
    spread(r.node);
  }
}

void membership::merge_out(member& m, const node_record& r, time_point now) {
  // A node that is really gone was silent to this node for as long as to the sender, but for a heartbeat.
  if (r.claim == node_claim::gone && is_connected(m) && now - m.signs.heard < options_.gone - options_.heartbeat)
    return challenge(m, r);
  m.record.round = r.round;
  m.known = true;
  if (m.record.is_out())
    m.record.claim = r.claim;
  else
    end(m, r.claim == node_claim::left ? node_end::left : node_end::said, r.claim, now);
}

/// Makes a node that was no member one.
void membership::revive(member& m, const node_record& r, time_point now) {
  fit_mesh(now);
  const auto addresses = m.record.addresses;
  m.record = r;
  if (r.addresses.empty()) m.record.addresses = addresses;
  m.known = true;
  m.doubt.stands = false;
  m.signs.told = now;
  m.challenged.reset();
  changed(m);
  spread(r.node);
  if (!is_mesh_ && !rounds_.is_over()) rounds_.add(r.node);
  if (m.session.up && m.session.greeted) return link(m);
  if (m.session.up) return;
  m.session.since = now;
  if (!is_mesh_) return dials_.let_be(r.node, now, true);
  // The two nodes have just heard of each other: one dials, the other only if it cannot be reached. A node that listens
  // nowhere cannot be.
  const bool dials_first = self_.addresses.empty() || self_.node < r.node;
  if (!self_.is_out()) dials_.want(r.node, m.record.addresses, dials_first ? now : now + 1s);
}

void membership::about_me(const node_record& r) {
  if (r.incarnation != self_.incarnation || r.round < self_.round) return;
  if (r.round == self_.round && r.claim <= self_.claim) return;
  self_.round = r.round + 1;
  say_all({self_});
}

/// Sends the record to the node that it is about, to be refuted: this node has heard of that node more recently.
void membership::challenge(member& m, const node_record& r) {
  const std::pair what(r.round, r.claim);
  if (m.challenged && *m.challenged >= what) return;
  m.challenged = what;
  say(r.node, node_news{false, false, {r}});
}

/// Asks one member, of many that know more, for all that differs.
void membership::ask_for_all(member& m, time_point now) {
  if (differences_.may_ask(now)) say(m.record.node, detail::node_sums{true, sums()});
}

void membership::compare(member& m, std::uint64_t other, time_point now) {
  const bool same = other == digest();
  if (is_mesh_) {
    if (differences_.is_due(same, m.differs, now)) say(m.record.node, node_news{true, true, everything()});
  } else if (differences_.is_due_beyond(same, now)) {
    say(m.record.node, detail::node_sums{true, sums()});
  }
}

std::vector<node_record> membership::everything() const {
  std::vector<node_record> all{self_};
  for (const auto& [n, m] : members_)
    if (m.known) all.push_back(m.record);
  return all;
}

std::vector<std::uint64_t> membership::sums() const {
  record_sums all = sums_;
  if (!self_.is_out()) all.change(self_.node, record_sums::sum_of(self_));
  return all.all();
}

void membership::take_message(member& m, const detail::node_sums& theirs, time_point) {
  const std::vector<std::uint64_t> ours = sums();
  if (!is_connected(m) || theirs.sums.size() != ours.size()) return;
  const auto differs = [&](const node_id& n) {
    const std::size_t part = record_sums::part_of(n);
    return theirs.sums[part] != ours[part];
  };
  node_news news;
  for (node_record& r : everything())
    if (differs(r.node)) news.records.push_back(std::move(r));
  news.all = news.records.size() > news_beyond_max;  // others know most of it
  if (!news.records.empty()) say(m.record.node, std::move(news));
  if (theirs.want) say(m.record.node, detail::node_sums{false, ours});
}

}  // namespace troupe::logic
