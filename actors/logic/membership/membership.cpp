// What this file is for: members: sessions that come and end, and what peers say on them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/membership/membership.hpp"

#include <algorithm>

namespace troupe::logic {

using namespace std::chrono_literals;
using detail::node_alive;
using detail::node_beat;
using detail::node_hello;
using detail::node_news;
using detail::node_probe;

namespace {

constexpr auto heard_of_late = 10s;
constexpr auto a_while = 1s;  // a connection that has lasted for so long was more than an attempt

bool share_an_address(const std::vector<node_address>& a, const std::vector<node_address>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

}  // namespace

membership::membership(const node_id& self, std::uint64_t incarnation, std::vector<node_address> addresses,
                       const membership_options& options, time_point now)
    : options_(options),
      self_{self, incarnation, 0, node_claim::live, std::move(addresses)},
      dials_(options.dials, options.seed),
      views_(self),
      began_(now),
      next_beat_(now),
      promised_(now),
      rounds_(options.seed + 2),
      random_(options.seed + 1) {
  for (const node_address& a : self_.addresses) dials_.is_self(a);
}

void membership::listens(std::vector<node_address> addresses) {
  for (const node_address& a : addresses) dials_.is_self(a);
  if (addresses == self_.addresses) return;
  self_.addresses = std::move(addresses);
  if (members_.empty()) return;
  ++self_.round;
  say_all({self_});
}

// ---- sessions -------------------------------------------------------------------------------------------------------

void membership::candidate(const node_address& a, time_point now) {
  if (!self_.is_out()) dials_.add(a, now);
}

void membership::session_up(const node_id& n, std::uint64_t incarnation, const std::vector<node_address>& addresses,
                            const std::optional<node_address>& dialled, time_point now) {
  fit_mesh(now);
  if (n == self_.node || self_.is_out() || (!members_.contains(n) && members_.size() >= options_.nodes)) {
    if (dialled && n == self_.node) dials_.is_self(*dialled);
    actions_.push_back(close{n});
    return;
  }
  member& m = members_[n];
  if (m.record.node != n) {
    m.record = {n, incarnation, 0, node_claim::live, addresses};
  } else if (incarnation > m.record.incarnation) {  // a process that was restarted
    if (!m.record.is_out() && m.known) end(m, node_end::replaced, node_claim::gone, now);
    m = {};
    m.record = {n, incarnation, 0, node_claim::live, addresses};
  } else if (incarnation < m.record.incarnation || m.record.claim == node_claim::left) {
    actions_.push_back(close{n});
    return;
  }
  if (m.session.up) {
    const node_record record = m.record;
    session_down(n, now);  // a member that came and went is forgotten
    members_[n].record = record;
  }
  member& up = members_[n];
  up.session.up = true;
  up.session.greeted = false;
  up.session.said_link = up.session.heard_link = false;
  up.signs.heard = up.session.since = up.signs.answered = now;
  up.signs.asked = up.signs.deaf_since = {};
  up.signs.sent = 0;
  up.empty.clear();
  up.challenged.reset();
  if (!addresses.empty()) up.record.addresses = addresses;
  dials_.reached(n, addresses, dialled);
  if (is_mesh_ || !up.known)
    for (auto& [other, o] : members_)  // an address belongs to one process only
      if (other != n && o.known && !o.session.up && !o.record.is_out() &&
          share_an_address(addresses, o.record.addresses))
        end(o, node_end::replaced, node_claim::gone, now);

  attend(up);
  up.session.said_link = up.met || up.watch.wanted || (is_mesh_ && active_.size() < 2 * options_.mesh_max);
  node_hello h{self_, up.met, {}, static_cast<std::uint32_t>(sums_.count() + 1), digest(), use_of(up)};
  if (up.record.claim != node_claim::live) h.of_you = up.record;
  say(n, std::move(h));
}

void membership::session_down(const node_id& n, time_point now) {
  const auto found = members_.find(n);
  if (found == members_.end()) return;
  member& m = found->second;
  if (!m.session.up && m.known && !m.record.is_out()) return;
  const bool had_use = !is_mesh_ && m.known && !m.record.is_out() && now - m.session.since >= a_while;
  m.session.up = m.session.greeted = false;
  m.session.since = now;
  m.empty.clear();
  dials_.lost(n, now, m.met || had_use);
  if (!m.known && !m.record.is_out()) {
    members_.erase(found);  // it came and went, and no other node has spoken of it
    active_.erase(n);
    return;
  }
  if (m.record.is_out() || self_.is_out()) return;
  if (had_use) {
    ask(m, now);  // detects a process that has ended
  } else if (!is_mesh_) {
    m.signs.asked = now;
    attend(m);
  }
  if (m.met) {
    dials_.want(n, m.record.addresses, now);
    doubt(m, now);
  }
}

void membership::refused(const node_address& a, bool nobody_listens, time_point now) {
  const std::optional<node_id> n = dials_.node_at(a);
  dials_.refused(a, now);
  const auto found = n ? members_.find(*n) : members_.end();
  if (!nobody_listens || found == members_.end()) return;
  member& m = found->second;
  // Beyond a mesh a connection that ended just now shows that the process was there.
  const bool was_here = m.met || (!is_mesh_ && m.known && !m.record.is_out() && now - m.signs.heard < heard_of_late);
  if (!was_here || m.session.up || std::find(m.empty.begin(), m.empty.end(), a) != m.empty.end()) return;
  m.empty.push_back(a);
  // Only the member's own addresses count, not an alias from discovery: there could be others.
  for (const node_address& own : m.record.addresses)
    if (std::find(m.empty.begin(), m.empty.end(), own) == m.empty.end()) return;
  if (!m.record.addresses.empty()) end(m, node_end::ended, node_claim::gone, now);
}

void membership::known(const node_address& a, const node_id& n, time_point now) {
  const auto found = members_.find(n);
  if (found != members_.end() && found->second.session.up) return dials_.reached(n, {}, a);
  dials_.refused(a, now);
}

void membership::is_self(const node_address& a) { dials_.is_self(a); }

void membership::heard(const node_id& n, time_point when) {
  const auto found = members_.find(n);
  if (found == members_.end()) return;
  member& m = found->second;
  if (!m.session.up || when <= m.signs.heard) return;
  m.signs.heard = when;
  believe(m, when);
}

// Trusts a member that speaks, if it also hears: a member that does not hear cannot be worked with, and a message that
// was under way for long is no sign of life.
void membership::believe(member& m, time_point now) {
  const bool hears = hears_us(m, now);
  std::erase_if(m.askers, [&](const auto& a) {
    const bool is = hears || (!is_deaf(m) && m.signs.answered >= a.second);
    if (is) say(a.first, node_alive{m.record.node});
    return is;
  });
  if (hears && is_connected(m)) trust(m);
}

bool membership::hears_us(const member& m, time_point now) const {
  if (is_deaf(m)) return false;
  return m.signs.sent == 0 || now - m.signs.answered < options_.suspect ||
         (m.doubt.stands && m.signs.answered >= m.doubt.since);
}

void membership::give_up(const node_id& n, time_point now) {
  const auto found = members_.find(n);
  if (found == members_.end() || !found->second.met) return;
  member& m = found->second;
  m.met = m.doubt.stands = false;
  turns_.clear();
  actions_.push_back(gone{n, node_end::given_up});
  show(m, node_end::given_up);
  if (!std::exchange(m.session.up, false)) return;
  m.session.greeted = false;
  m.session.since = now;
  actions_.push_back(close{n});
  dials_.lost(n, now, true);
  dials_.want(n, m.record.addresses, now);
}

void membership::leave(time_point) {
  if (self_.is_out()) return;
  ++self_.round;
  self_.claim = node_claim::left;
  live_.reset();
  say_all({self_});
}

// ---- changes of state -----------------------------------------------------------------------------------------------

void membership::trust(member& m) {
  if (m.record.claim == node_claim::suspect) m.record.claim = node_claim::live;
  if (!m.doubt.stands) return;
  m.doubt.stands = false;
  if (m.met) actions_.push_back(refuted{m.record.node});
}

// ---- messages -------------------------------------------------------------------------------------------------------

void membership::message(const node_id& from, const membership_message& what, time_point now) {
  const auto found = members_.find(from);
  if (found == members_.end() || !found->second.session.up) return;
  member& m = found->second;
  if (const auto* b = std::get_if<node_beat>(&what)) note(m, *b, now);
  m.signs.heard = std::max(m.signs.heard, now);
  believe(m, now);
  std::visit(
      [&](const auto& x) {
        if constexpr (requires { take_message(m, x, now); }) {
          take_message(m, x, now);
        } else {
          views::outbox out;
          if (views_.message(from, x, out)) actions_.push_back(view_changed{});
          for (auto& [to, message] : out) say(to, std::move(message));
        }
      },
      what);
}

void membership::take_message(member& m, const node_hello& h, time_point now) {
  const node_id n = m.record.node;
  if (m.session.greeted || h.self.node != n) return;
  m.session.greeted = true;
  link(m, now, h.link);
  // The refutation is sent before anything that follows from the peer's joining here.
  if (h.of_you) about_me(*h.of_you);
  const bool was_met = m.met;
  merge(h.self, now);
  if (m.record.is_out() || !m.session.up) return;  // joins once it has refuted
  if (!m.known) {
    m.known = true;
    const auto addresses = std::move(m.record.addresses);
    m.record = h.self;
    if (m.record.addresses.empty()) m.record.addresses = addresses;
    changed(m);
    spread(n);
  }
  if (was_met && h.knows_you) {
    actions_.push_back(resumed{n});
    dials_.proved(n);
    trust(m);
  } else if (was_met) {
    m.met = false;
    actions_.push_back(gone{n, node_end::forgot_us});
    show(m, node_end::forgot_us);
  }
  link(m);
  const std::size_t ours = sums_.count() + 1;
  if (h.digest == digest()) return;
  if (is_mesh_ && h.members <= options_.mesh_max) {
    // A node from outside, or from the smaller part, hears at once of all members that it can join.
    if (h.members < ours || (h.members == ours && self_.node < n)) say(n, node_news{true, true, everything()});
  } else if (h.members >= 2 * ours) {
    ask_for_all(m, now);
  } else if (!is_mesh_) {
    compare(m, h.digest, now);
  }
}

void membership::take_message(member& m, const detail::node_link& l, time_point now) {
  link(m, now, l.use);
  link(m);
}

void membership::take_message(member& m, const detail::node_rest&, time_point now) { rest(m, now, false); }

void membership::note(member& m, const node_beat& b, time_point now) {
  if (!is_connected(m)) return;
  m.signs.deaf_since = b.deaf_ms == 0 ? time_point{} : now - std::chrono::milliseconds(b.deaf_ms);
  m.signs.sent = std::max(m.signs.sent, b.sent);
  if (b.heard != 0 && b.heard <= own_time(now))
    m.signs.answered = std::max(m.signs.answered, std::min(began_ + std::chrono::milliseconds(b.heard), now));
}

void membership::take_message(member& m, const node_beat& b, time_point now) {
  if (!is_connected(m)) return;
  if (b.answer) {
    node_beat answer = beat_for(m, false, now);
    if (!is_mesh_) tell_news(answer.news);
    say(m.record.node, std::move(answer));
  }
  for (const node_record& r : b.news) merge(r, now);
  if (!is_connected(m)) return;
  compare(m, b.digest, now);
  if (b.view >= views_.agreed().rank()) return;
  if (is_mesh_) {
    if (m.met) say(m.record.node, detail::view_agreed{views_.agreed()});
  } else if (now - m.told_view >= options_.probe) {  // other members tell it, too
    m.told_view = now;
    views::outbox out;
    views_.tell_behind(m.record.node, b.view, out);
    for (auto& [to, message] : out) say(to, std::move(message));
  }
}

void membership::take_message(member& m, const node_probe& p, time_point now) {
  const auto found = members_.find(p.target);
  if (found == members_.end()) return;
  member& target = found->second;
  if (!is_connected(target) && (is_mesh_ || !target.known || target.record.is_out())) return;
  std::erase_if(target.askers,
                [&](const auto& a) { return a.first == m.record.node || now - a.second > options_.suspect; });
  target.askers.emplace_back(m.record.node, now);
  if (is_connected(target))
    say(p.target, beat_for(target, true, now));
  else if (!is_awaited(target))
    ask(target, now);
}

void membership::take_message(member&, const node_alive& a, time_point now) {
  const auto found = members_.find(a.target);
  if (found != members_.end()) found->second.signs.told = now;
}

void membership::take_message(member& m, const node_news& news, time_point now) {
  const node_id from = m.record.node;
  rumours_.be_quiet(news.all && !is_mesh_);  // others know it
  for (const node_record& r : news.records) merge(r, now);
  rumours_.be_quiet(false);
  const auto found = members_.find(from);
  if (news.all && news.want && found != members_.end() && is_connected(found->second))
    say(from, node_news{true, false, everything()});
}

// ---- queries --------------------------------------------------------------------------------------------------------

node_state membership::state_of(const node_id& n) const {
  if (n == self_.node) return self_.is_out() ? node_state::gone : node_state::live;
  const auto found = members_.find(n);
  if (found == members_.end()) return node_state::unknown;
  const member& m = found->second;
  if (m.met) return m.doubt.stands ? node_state::suspect : node_state::live;
  if (m.shown) return m.record.claim == node_claim::suspect ? node_state::suspect : node_state::live;
  if (m.session.up) return node_state::joining;
  return m.record.is_out() ? node_state::gone : node_state::candidate;
}

std::vector<node_id> membership::members() const {
  std::vector<node_id> all;
  bool self = self_.is_out();
  for (const auto& [n, m] : members_) {
    if (!self && self_.node < n) {
      all.push_back(self_.node);
      self = true;
    }
    if (m.known && !m.record.is_out()) all.push_back(n);
  }
  if (!self) all.push_back(self_.node);
  return all;
}

std::optional<node_record> membership::record_of(const node_id& n) const {
  if (n == self_.node) return self_;
  const auto found = members_.find(n);
  return found == members_.end() || !found->second.known ? std::nullopt : std::optional(found->second.record);
}

}  // namespace troupe::logic
