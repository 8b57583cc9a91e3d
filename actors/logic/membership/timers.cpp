// What this file is for: members: heartbeats, silence and what follows from it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "actors/logic/membership/membership.hpp"

namespace troupe::logic {

using namespace std::chrono_literals;
using detail::node_beat;

namespace {

constexpr auto forget_every = 1s;

}  // namespace

// Returns when to call tick(); a node that has left does not dial.
membership::time_point membership::wake() const {
  return self_.is_out() ? next_beat_ : std::min(next_beat_, dials_.next());
}

void membership::tick(time_point now) {
  if (now - promised_ > options_.late) tolerate_own_delay(now - promised_, now);
  if (now >= next_beat_) {
    fit_mesh(now);
    if (!is_mesh_ && sums_.count() + 1 <= options_.mesh_max)
      make_mesh(now);  // all nodes that know the same do the same
    next_beat_ += options_.heartbeat;
    if (next_beat_ <= now) next_beat_ = now + options_.heartbeat;
    forget(now);
    if (!self_.is_out()) {
      beat(now);
      for (const node_id& n : attended())
        if (member& m = members_.at(n); !m.record.is_out() || m.session.up) look_after(m, now);
      if (!is_mesh_) look_around(now);
      agree(now);
    }
  }
  if (!self_.is_out())
    for (const node_address& a : dials_.due(now)) actions_.push_back(dial{a, {}});
  promised_ = std::max(now, wake());
}

/// Shifts times by the duration for which this node did not run, or not enough: messages may have been sent that it did
/// not hear.
void membership::tolerate_own_delay(time_point::duration late, time_point now) {
  const auto shift = [&](time_point& t) {
    if (t != time_point{}) t = std::min(t + late, now);
  };
  for (const node_id& n : attended()) {
    member& m = members_.at(n);
    shift(m.signs.heard);
    shift(m.signs.asked);
    shift(m.session.since);
    shift(m.signs.told);
    shift(m.signs.deaf_since);
    shift(m.signs.answered);
    shift(m.doubt.since);
    shift(m.watch.since);
  }
}

void membership::beat(time_point now) {
  if (!is_mesh_) return beat_beyond(now);
  for (auto& [n, m] : members_)
    if (m.session.up && m.session.greeted) beat_to(m, now - m.signs.heard >= 2 * options_.heartbeat, now);
}

/// Returns the time since which this node has no sign of life of its own.
membership::time_point membership::quiet_since(const member& m, time_point now) const {
  if (!is_watched(m)) {
    if (m.met && !m.session.up) return m.session.since;
    return is_awaited(m) ? m.signs.asked : now;
  }
  time_point heard = is_deaf(m) ? std::min(m.signs.heard, m.signs.deaf_since) : m.signs.heard;
  // The last message may have been under way for long: what its sender had heard by then shows how long.
  if (m.signs.sent != 0 && (is_deaf(m) || now - m.signs.heard >= 2 * options_.heartbeat))
    heard = std::min(heard, m.signs.answered + options_.heartbeat);
  time_point quiet = m.session.since;
  if (!m.session.up && m.signs.heard != time_point{}) quiet = std::min(m.session.since, heard);
  if (m.session.up) quiet = heard;
  return is_mesh_ ? quiet : std::max(quiet, m.watch.since);
}

void membership::look_after(member& m, time_point now) {
  const node_id n = m.record.node;
  if (m.session.up && !is_connected(m)) {  // it greets or refutes in time, or is not waited for any longer
    if (now - m.session.since < options_.gone) return;
    actions_.push_back(close{n});
    m.session.up = m.session.greeted = false;
    m.session.since = now;
    dials_.lost(n, now, false);
    return;
  }
  const time_point quiet = quiet_since(m, now);
  if (now - quiet >= options_.suspect) {
    doubt(m, now);
    if (m.record.claim == node_claim::live && now - m.signs.told >= options_.suspect) {
      m.record.claim = node_claim::suspect;
      spread(n);
    }
  }
  if (!is_mesh_ && now - quiet < options_.suspect / 2) return;  // it may be suspect to others
  if (is_mesh_ && !m.doubt.stands && m.record.claim != node_claim::suspect && now - quiet < options_.suspect) return;
  probe(m, now);
  if (now - std::max(quiet, m.signs.told) >= options_.gone) return end(m, node_end::silent, node_claim::gone, now);
  if (m.doubt.stands && m.session.up) dial_anew(m, now);
  // Other members hear it: the path from here is broken.
  if (!is_mesh_ && !m.watch.wanted && now - quiet >= options_.suspect && now - m.signs.told < options_.suspect)
    rest(m, now, false);
}

void membership::probe(member& m, time_point now) {
  if (now - m.doubt.probed < options_.probe) return;
  m.doubt.probed = now;
  for (const node_id& n : some_connected(options_.probes, m.record.node)) say(n, detail::node_probe{m.record.node});
}

/// Dials a silent member anew: after a cut of a second, TCP of the system tries again only at three, when the peer is
/// gone; a new connection is there at once.
void membership::dial_anew(member& m, time_point now) {
  if (now - m.doubt.redialled < options_.probe) return;
  m.doubt.redialled = now;
  for (const node_address& a : m.record.addresses) actions_.push_back(dial{a, m.record.node});
}

void membership::agree(time_point now) {
  views::outbox out;
  if (views_.tick(live(), now, out, !is_mesh_)) actions_.emplace_back(std::in_place_type<view_changed>);
  for (auto& [to, message] : out) say(to, std::move(message));
  pass_polls_on(now);
}

void membership::forget(time_point now) {
  std::erase_if(active_, [&](const node_id& n) {
    const auto found = members_.find(n);
    return found == members_.end() || !needs_attention(found->second);
  });
  if (now - forgot_ < forget_every || members_.size() == sums_.count()) return;
  forgot_ = now;
  if (members_.size() < options_.nodes / 2) {
    std::erase_if(members_, [&](const auto& x) {
      const member& m = x.second;
      return m.record.is_out() && !m.session.up && now - m.ended >= options_.forget;
    });
    return;
  }
  // Members that ended first are forgotten first: there are too many.
  std::vector<std::pair<time_point, node_id>> out;
  for (const auto& [n, m] : members_)
    if (m.record.is_out() && !m.session.up) out.emplace_back(m.ended, n);
  std::sort(out.begin(), out.end());
  out.resize(out.size() - out.size() / 2);
  for (const auto& [t, n] : out) members_.erase(n);
}

}  // namespace troupe::logic
