// What this file is for: members: more than fit a mesh: which watch and which stay connected with each other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Each member watches a few others, as in a mesh: it has a connection to each, asks with every heartbeat, and calls a
// silent one suspect. Every second one of the watched members is let go and the next one, of a random order of all, is
// taken on; so each member is watched by as many on average, whatever their number, and by others all the time. A
// watched member asks a few of its watchers in turn. Rejected: one probe to one member each period over a connection
// made for it, as in SWIM; a silent member is then found by chance, later than in a mesh, while a handshake costs as
// much as twenty heartbeats.
#include <algorithm>

#include "actors/logic/membership/membership.hpp"

namespace troupe::logic {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t new_at_once = 4;          // connections that are begun at a heartbeat
constexpr std::size_t passed_max = 32;          // ends passed on at once between two heartbeats; those tell the rest
constexpr auto patience = 2s;                   // wait for a peer that knows of more members than this node
constexpr auto isolation_probe_every = 1000ms;  // interval of dials to members that are gone: the path may have failed
constexpr std::size_t suspects_skipped = 8;     // of so many members that are suspect already, one is looked at

}  // namespace

// ---- into a mesh, and out of it -------------------------------------------------------------------------------------

void membership::fit_mesh(time_point now) {
  if (is_mesh_ && sums_.count() + 1 > options_.mesh_max) leave_mesh(now);
}

void membership::leave_mesh(time_point now) {
  is_mesh_ = false;
  next_turn_ = now;
  for (auto& [n, m] : members_) {
    m.signs.asked = {};
    m.watch.since = now;
    if (m.met && !m.session.up)
      attend(m);
    else if (!m.session.up && !m.record.is_out())
      dials_.let_be(n, now, true);
    show(m, node_end::said);
  }
}

/// Changes to a mesh: so few members are left that each connects with all.
void membership::make_mesh(time_point now) {
  is_mesh_ = true;
  for (auto& [n, m] : members_) {
    m.watch.chosen = false;
    m.signs.heard = m.session.since = m.signs.answered = now;  // it was not expected to say anything so far
    m.signs.asked = {};
    m.signs.sent = 0;
    if (m.record.is_out() || !m.known) continue;
    attend(m);
    if (m.session.up && m.session.greeted) {
      if (!std::exchange(m.session.said_link, true)) say(n, detail::node_link{use_of(m)});
      link(m);
    } else if (!m.session.up) {
      dials_.want(n, m.record.addresses, self_.addresses.empty() || self_.node < n ? now : now + 1s);
    }
    show(m, node_end::let_go);
  }
}

// ---- heartbeats -----------------------------------------------------------------------------------------------------

void membership::beat_beyond(time_point now) {
  for (const node_id& n : attended()) {
    const member& m = members_.at(n);
    if (!m.session.up || !m.session.greeted) continue;
    if (is_watched(m))
      beat_to(m, m.watch.chosen || now - m.signs.heard >= 2 * options_.heartbeat, now);
    else if (is_awaited(m) || m.doubt.stands)
      beat_to(m, true, now);
  }
  // Asks some of the connected members that are not watched, in turn.
  std::size_t asked = 0;
  for (bool again = false; asked < options_.asked;) {
    if (turns_.empty()) {
      if (std::exchange(again, true)) return;
      for (const node_id& n : attended())
        if (const member& m = members_.at(n); is_connected(m) && !is_watched(m)) turns_.push_back(n);
      std::shuffle(turns_.begin(), turns_.end(), random_);
      if (turns_.empty()) return;
    }
    const auto found = members_.find(turns_.back());
    turns_.pop_back();
    if (found == members_.end()) continue;
    member& m = found->second;
    if (!is_connected(m) || is_watched(m) || is_awaited(m)) continue;
    if (now - m.signs.heard < 2 * options_.heartbeat) continue;  // it has said something unasked
    m.signs.asked = now;
    ++asked;
    beat_to(m, true, now);
  }
}

void membership::look_around(time_point now) {
  passed_ = 0;
  choose(now);
  keep_links(now);
  let_rest(now);
  probe_isolation(now);
}

// ---- watched members ------------------------------------------------------------------------------------------------

/// Returns the next member that may be watched or linked now; null if there is none for the moment.
membership::member* membership::next_in_turn(bool with_connected) {
  for (std::size_t tries = 2 * new_at_once; tries > 0; --tries) {
    if (rounds_.is_over()) {
      std::vector<node_id> all;
      for (const auto& [n, m] : members_)
        if (m.known && !m.record.is_out()) all.push_back(n);
      rounds_.begin(std::move(all));
    }
    const auto n = rounds_.next();
    const auto found = n ? members_.find(*n) : members_.end();
    if (found == members_.end()) continue;
    member& m = found->second;
    if (!m.known || m.record.is_out() || m.watch.chosen || m.watch.wanted || is_awaited(m)) continue;
    if (m.record.addresses.empty() || (m.session.up && !with_connected)) continue;
    if (m.record.claim == node_claim::suspect && random_() % suspects_skipped != 0) continue;  // others look after it
    return &m;
  }
  return nullptr;
}

void membership::choose(time_point now) {
  std::size_t chosen = 0;
  member* oldest = nullptr;
  for (const node_id& n : attended()) {
    member& m = members_.at(n);
    if (!m.watch.chosen) continue;
    ++chosen;
    if (!oldest || m.watch.since < oldest->watch.since) oldest = &m;
  }
  std::size_t more = chosen < options_.watched ? std::min(new_at_once, options_.watched - chosen) : 0;
  if (now >= next_turn_) {
    next_turn_ = now + options_.turn;
    // A silent member stays watched until that has an end.
    if (more == 0 && oldest && now - oldest->signs.heard < options_.suspect && !oldest->watch.wanted) {
      oldest->watch.chosen = false;
      if (!oldest->met) rest(*oldest, now, true);
      more = 1;
    }
  }
  for (; more > 0; --more) {
    member* const m = next_in_turn(false);  // connected members are looked after anyway
    if (!m) return;
    m->watch.chosen = true;
    watch(*m, now);
  }
}

void membership::watch(member& m, time_point now) {
  m.watch.since = now;
  attend(m);
  if (m.session.up) return;
  m.session.since = now;
  m.empty.clear();
  dials_.want(m.record.node, m.record.addresses, now);
}

/// Awaits a sign of life of a member that is not watched.
void membership::ask(member& m, time_point now) {
  m.signs.asked = now;
  attend(m);
  if (m.session.up) return;
  m.empty.clear();
  dials_.want(m.record.node, m.record.addresses, now);
}

// ---- links ----------------------------------------------------------------------------------------------------------

void membership::work_with(const node_id& n, time_point now) {
  const auto found = members_.find(n);
  if (found == members_.end() || found->second.record.is_out() || std::exchange(found->second.watch.wanted, true))
    return;
  member& m = found->second;
  m.watch.since = now;
  if (is_mesh_) return;
  watch(m, now);
  if (m.session.up && m.session.greeted) {
    m.session.said_link = true;
    say(n, detail::node_link{detail::link_use::work});
  }
  link(m);
}

void membership::keep_links(time_point now) {
  std::size_t links = 0;
  for (const node_id& n : attended()) links += members_.at(n).watch.wanted ? 1 : 0;
  for (std::size_t more = new_at_once; more > 0 && links < links_wanted_; --more, ++links) {
    member* const m = next_in_turn(true);
    if (!m) return;
    work_with(m->record.node, now);
  }
}

// ---- connections ----------------------------------------------------------------------------------------------------

/// Ends a connection that is of no use any more. `says_so`: false if it is broken, or if the peer has said so.
void membership::rest(member& m, time_point now, bool says_so) {
  const node_id n = m.record.node;
  if (std::exchange(m.session.up, false)) {
    if (says_so) say(n, detail::node_rest{});
    actions_.push_back(close{n});
  }
  m.session.greeted = m.watch.chosen = m.session.said_link = m.session.heard_link = false;
  m.signs.asked = {};
  dials_.let_be(n, now, true);
  if (std::exchange(m.met, false)) {
    m.doubt.stands = false;
    actions_.push_back(gone{n, node_end::let_go});
    show(m, node_end::let_go);
  }
  if (m.watch.wanted && !is_mesh_) watch(m, now);
  if (is_mesh_) dials_.want(n, m.record.addresses, now + patience);
}

void membership::let_rest(time_point now) {
  std::vector<std::pair<time_point, node_id>> idle;
  std::size_t connected = 0;
  for (const node_id& n : attended()) {
    const member& m = members_.at(n);
    if (!is_connected(m) || is_watched(m)) continue;
    ++connected;
    const bool is_needed = is_awaited(m) || m.doubt.stands || !m.askers.empty() || m.record.addresses.empty();
    if (!is_needed && now - m.session.since >= options_.turn) idle.emplace_back(m.session.since, n);
  }
  std::sort(idle.begin(), idle.end());
  for (std::size_t i = 0; i < idle.size() && connected > options_.unwatched; ++i, --connected)
    rest(members_.at(idle[i].second), now, true);
}

/// Dials a member that is gone, so that nodes that were apart for long enough to be gone for each other find each other
/// again.
void membership::probe_isolation(time_point now) {
  if (now - probed_isolation_ < isolation_probe_every || members_.size() == sums_.count()) return;
  probed_isolation_ = now;
  // All members together dial each one that is gone about once a second.
  const std::size_t out = members_.size() - sums_.count();
  if (random_() % (sums_.count() + 1) >= out) return;
  member* at = nullptr;
  std::size_t seen = 0;
  for (auto& [n, m] : members_)
    if (m.record.claim == node_claim::gone && !m.session.up && !m.record.addresses.empty() && random_() % ++seen == 0)
      at = &m;
  if (at) dials_.probe_gone(at->record.node, at->record.addresses, now);
}

// ---- news -----------------------------------------------------------------------------------------------------------

/// Tells some members before the next heartbeat that this one is gone.
void membership::pass_on(const member& m) {
  if (++passed_ > passed_max) return;
  for (const node_id& n : some_connected(options_.told, m.record.node))
    say(n, detail::node_news{false, false, {m.record}});
}

/// Passes a poll on to some members.
void membership::pass_polls_on(time_point now) {
  const detail::view_poll* const poll = is_mesh_ ? nullptr : views_.poll();
  if (!poll) return;
  if (!relay_.is_news(*poll, now, options_.gone)) return;
  for (const node_id& n : some_connected(options_.told, self_.node)) say(n, *poll);
}

}  // namespace troupe::logic
