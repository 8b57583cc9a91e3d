// What this file is for: members: heartbeats, silence and what follows from it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "actors/logic/membership.hpp"

namespace troupe::logic {

using namespace std::chrono_literals;
using detail::node_beat;

// Who has left dials nobody.
membership::time_point membership::wake() const {
  return self_.is_out() ? next_beat_ : std::min(next_beat_, dials_.next());
}

void membership::tick(time_point now) {
  if (now - promised_ > options_.late) excuse(now - promised_, now);
  if (now >= next_beat_) {
    const auto met = std::count_if(members_.begin(), members_.end(), [](const auto& x) { return x.second.met; });
    is_mesh_ = static_cast<std::size_t>(met) < options_.mesh_max;
    next_beat_ += options_.heartbeat;
    if (next_beat_ <= now) next_beat_ = now + options_.heartbeat;
    forget(now);
    if (!self_.is_out()) {
      beat(now);
      for (auto& [n, m] : members_)
        if (!m.record.is_out() || m.session) look_after(m, now);
      agree(now);
    }
  }
  if (!self_.is_out())
    for (const node_address& a : dials_.due(now)) actions_.push_back(dial{a});
  promised_ = std::max(now, wake());
}

/// This node did not run for so long, or not enough: what it did not hear was perhaps said.
void membership::excuse(time_point::duration late, time_point now) {
  const auto shift = [&](time_point& t) {
    if (t != time_point{}) t = std::min(t + late, now);
  };
  for (auto& [n, m] : members_) {
    shift(m.heard);
    shift(m.asked);
    shift(m.since);
    shift(m.alive);
    shift(m.deaf);
    shift(m.answered);
    shift(m.doubted_at);
  }
}

std::uint64_t membership::own_time(time_point now) const {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now - began_).count()) + 1;
}

node_beat membership::beat_for(const member& m, bool answer, time_point now) const {
  node_beat b{answer, digest(), views_.agreed().rank(), {}, 0, own_time(now), m.sent};
  if (const auto quiet = now - m.heard; is_mesh_ && quiet >= 2 * options_.heartbeat)
    b.deaf_ms = static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(quiet).count());
  return b;
}

void membership::beat(time_point now) {
  const auto tell = [&](const node_id& n, bool answer) {
    node_beat b = beat_for(members_.at(n), answer, now);
    tell_news(b.news);
    say(n, std::move(b));
  };
  if (is_mesh_) {
    for (auto& [n, m] : members_)
      if (m.session && m.greeted) tell(n, now - m.heard >= 2 * options_.heartbeat);
    return;
  }
  for (auto& [n, m] : members_)
    if (m.session && m.greeted && (m.asked > m.heard || m.doubted)) tell(n, true);
  std::size_t asked = 0;
  for (std::size_t tried = 0; asked < options_.asked && tried < members_.size() + 1; ++tried) {
    if (turns_.empty()) {
      for (const auto& [n, m] : members_)
        if (m.met) turns_.push_back(n);
      std::shuffle(turns_.begin(), turns_.end(), random_);
      if (turns_.empty()) return;
    }
    const auto found = members_.find(turns_.back());
    turns_.pop_back();
    if (found == members_.end() || !is_connected(found->second)) continue;
    member& m = found->second;
    if (m.asked > m.heard) continue;
    m.asked = now;
    ++asked;
    tell(m.record.node, true);
  }
}

void membership::look_after(member& m, time_point now) {
  const node_id n = m.record.node;
  if (m.session && !is_connected(m)) {  // it greets or refutes, or it is not worth waiting for
    if (now - m.since < options_.gone) return;
    actions_.push_back(close{n});
    m.session = m.greeted = false;
    m.since = now;
    dials_.lost(n, now, false);
    return;
  }
  // Since when this node has no sign of life of its own.
  time_point heard = is_deaf(m) ? std::min(m.heard, m.deaf) : m.heard;
  // What came last may have been on its way for long: what its sender had heard by then tells.
  if (m.sent != 0 && (is_deaf(m) || now - m.heard >= 2 * options_.heartbeat))
    heard = std::min(heard, m.answered + options_.heartbeat);
  time_point quiet = m.since;
  if (!m.session && is_mesh_ && m.heard != time_point{}) quiet = std::min(m.since, heard);
  if (m.session && is_mesh_) quiet = heard;
  if (m.session && !is_mesh_) quiet = m.asked > m.heard ? m.asked : now;
  if (now - quiet >= options_.suspect) {
    doubt(m, now);
    if (m.record.claim == node_claim::live && now - m.alive >= options_.suspect) {
      m.record.claim = node_claim::suspect;
      spread(n);
    }
  }
  if (!m.doubted && m.record.claim != node_claim::suspect && now - quiet < options_.suspect) return;
  probe(m, now);
  if (now - std::max(quiet, m.alive) >= options_.gone) end(m, node_end::silent, node_claim::gone, now);
}

void membership::probe(member& m, time_point now) {
  if (now - m.probed < options_.probe) return;
  m.probed = now;
  std::vector<node_id> others;
  for (const auto& [n, o] : members_)
    if (&o != &m && is_connected(o) && !o.doubted) others.push_back(n);
  for (std::size_t i = 0; i < options_.probes && i < others.size(); ++i) {
    std::swap(others[i], others[i + random_() % (others.size() - i)]);
    say(others[i], detail::node_probe{m.record.node});
  }
}

void membership::agree(time_point now) {
  views::outbox out;
  if (views_.tick(live(), now, out)) actions_.emplace_back(std::in_place_type<view_changed>);
  for (auto& [to, message] : out) say(to, std::move(message));
}

void membership::forget(time_point now) {
  if (members_.size() < options_.nodes / 2) {
    std::erase_if(members_, [&](const auto& x) {
      const member& m = x.second;
      return m.record.is_out() && !m.session && now - m.ended >= options_.forget;
    });
    return;
  }
  // Too many: those that ended first go first.
  std::vector<std::pair<time_point, node_id>> out;
  for (const auto& [n, m] : members_)
    if (m.record.is_out() && !m.session) out.emplace_back(m.ended, n);
  std::sort(out.begin(), out.end());
  out.resize(out.size() - out.size() / 2);
  for (const auto& [t, n] : out) members_.erase(n);
}

}  // namespace troupe::logic
