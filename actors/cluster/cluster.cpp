// What this file is for: membership at work: sessions, time and discovery go in, members come out.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   discovery -- add_candidates --> +---------+ -- dial, send, close, at --> transport
//   transport -- up, down, refused, |         |
//                frames 0x01-0x0f, >| cluster | -- joined, resumed, suspected, refuted, lost --> cluster_events
//                time               +---------+ -- other frames, transfers, refused, reached -->
#include "actors/cluster/cluster.hpp"

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <troupe/error.hpp>

#include "actors/wire/membership_messages.hpp"
#include "actors/wire/node_names.hpp"

namespace troupe::detail {

using logic::membership;

namespace {

std::exception_ptr lost_error(const char* text) { return std::make_exception_ptr(error(errc::node_lost, text)); }

}  // namespace

cluster::cluster(net::transport& t, const net::identity& self, const logic::membership_options& options,
                 cluster_events& events)
    : transport_(t),
      events_(events),
      members_(name_of(self.id), self.incarnation, addresses_of(self.listens_on), options, t.now()),
      asks_where_(self.listens_on.empty()) {}

cluster::~cluster() = default;

// Runs a step of membership. After one that has thrown there are no more: the state may be half changed.
template <class F>
void cluster::guarded(F&& step) {
  if (has_failed_) return;
  try {
    check_fault();
    step();
  } catch (...) {
    has_failed_ = true;
    acting_ = false;
    tell_supervisor(std::current_exception());
  }
}

void cluster::later(std::function<void()> step) {
  transport_.at(transport_.now(), [this, step = std::move(step)] { guarded(step); });
}

void cluster::look_up() {
  later([] {});
}

void cluster::start() {
  transport_.start(*this);
  later([this] {
    if (asks_where_) members_.listens(addresses_of(transport_.listening()));
    wake();
  });
}

void cluster::add_candidates(std::vector<net::endpoint> all) {
  later([this, all = std::move(all)] {
    for (const net::endpoint& e : all) members_.candidate(address_of(e), transport_.now());
    act();
  });
}

void cluster::give_up(const node_id& n) {
  later([this, n] {
    members_.give_up(n, transport_.now());
    act();
  });
}

void cluster::want_links(std::size_t links) {
  later([this, links] { members_.want_links(links); });
}

void cluster::reach(const node_id& n) {
  later([this, n] { work_with(n); });
}

void cluster::work_with(const node_id& n) {
  members_.work_with(n, transport_.now());
  act();
}

void cluster::leave(std::function<void()> done) {
  transport_.at(transport_.now(), [this, done = std::move(done)]() mutable {
    if (has_failed_) return done();
    left_ = std::move(done);
    guarded([this] {
      members_.leave(transport_.now());
      act();
      check_left();
    });
    transport_.at(transport_.now() + std::chrono::seconds(1), [this] {
      if (left_) std::exchange(left_, nullptr)();
    });
  });
}

void cluster::check_left() {
  if (left_ && peers_.empty()) std::exchange(left_, nullptr)();
}

cluster::peer* cluster::peer_of(const node_id& n) {
  const auto found = peers_.find(n);
  return found == peers_.end() ? nullptr : &found->second;
}

// ---- what the transport tells ---------------------------------------------------------------------------------------

void cluster::up(const std::shared_ptr<net::session>& s) {
  guarded([&] {
    const net::identity& who = s->peer();
    const node_id n = name_of(who.id);
    std::optional<node_address> dialled;
    if (const auto e = s->dialled_at()) dialled = address_of(*e);
    peers_[n] = {s, false};
    members_.session_up(n, who.incarnation, addresses_of(who.listens_on), dialled, transport_.now());
    if (const auto e = s->dialled_at()) events_.reached(*e);
    for (const net::endpoint& e : who.listens_on) events_.reached(e);
    act();
  });
}

void cluster::frame(net::session& s, std::span<const std::byte> f) {
  guarded([&] { take_frame(s, f); });
}

void cluster::take_frame(net::session& s, std::span<const std::byte> f) {
  const node_id n = name_of(s.peer().id);
  peer* p = peer_of(n);
  if (!p || p->session.get() != &s) return;
  try {
    if (is_membership(f)) {
      members_.message(n, decode_membership(f), transport_.now());
      act();
    } else if (p->is_member) {
      events_.frame(s, f);
    } else if (members_.state_of(n) == logic::node_state::joining) {
      throw error(errc::protocol_error, "a peer sent work before it was a member");
    }
  } catch (const error& e) {
    if (e.code() != errc::protocol_error) throw;
    s.close(std::current_exception());
  }
}

net::pieces cluster::arriving(net::session& s, std::span<const std::byte> head, std::uint64_t bytes) {
  return events_.arriving(s, head, bytes);
}

void cluster::arrived(net::session& s, std::span<const std::byte> head, bool whole) { events_.arrived(s, head, whole); }

void cluster::down(net::session& s, std::exception_ptr) {
  const node_id n = name_of(s.peer().id);
  const auto found = peers_.find(n);
  if (found != peers_.end() && found->second.session.get() == &s) {
    const peer kept = std::move(found->second);
    peers_.erase(found);
    guarded([&] {
      members_.session_down(n, transport_.now());
      act();
    });
  }
  events_.ended(s);
  check_left();
}

void cluster::refused(const net::endpoint& where, std::exception_ptr why) {
  guarded([&] { take_refusal(where, why); });
}

void cluster::take_refusal(const net::endpoint& where, const std::exception_ptr& why) {
  const node_address a = address_of(where);
  using reason = net::dial_error::reason;
  try {
    std::rethrow_exception(why);
  } catch (const net::dial_error& e) {
    if (e.why() == reason::self)
      members_.is_self(a);
    else if (e.why() == reason::known && e.peer())
      members_.known(a, name_of(*e.peer()), transport_.now());
    else
      members_.refused(a, e.why() == reason::nobody_listens, transport_.now());
    if (e.why() == reason::self || e.why() == reason::known)
      events_.reached(where);
    else
      events_.refused(where, why);
  } catch (...) {
    members_.refused(a, false, transport_.now());
    events_.refused(where, why);
  }
  act();
}

// ---- what members want ----------------------------------------------------------------------------------------------

void cluster::wake() {
  if (const auto now = transport_.now(); now - looked_ >= std::chrono::milliseconds(50)) {  // work and bulk count too
    looked_ = now;
    for (const auto& [n, p] : peers_) members_.heard(n, p.session->heard());
  }
  members_.tick(transport_.now());
  act();
}

void cluster::act() {
  if (acting_) return;  // further out
  acting_ = true;
  for (auto all = members_.take(); !all.empty(); all = members_.take())
    for (const membership::action& a : all) act_on(a);
  acting_ = false;
  const auto next = members_.wake();
  if (next >= armed_) return;
  armed_ = next;
  transport_.at(next, [this, next] {
    if (armed_ == next) armed_ = net::transport::time_point::max();
    guarded([this] { wake(); });
  });
}

void cluster::act_on(const membership::action& what) {
  std::visit(
      [&](const auto& a) {
        using T = std::remove_cvref_t<decltype(a)>;
        if constexpr (std::is_same_v<T, membership::dial>) {
          const peer* const p = a.instead ? peer_of(*a.instead) : nullptr;
          if (p || !a.instead) transport_.dial(endpoint_of(a.to), p ? p->session : nullptr);
        } else if constexpr (std::is_same_v<T, membership::send>) {
          if (peer* p = peer_of(a.to)) p->session->send(encode(a.message));
        } else if constexpr (std::is_same_v<T, membership::close>) {
          if (peer* p = peer_of(a.node)) {
            p->is_member = false;
            const auto kept = p->session;
            kept->close(lost_error("the peer is not a member any more"));
          }
        } else if constexpr (std::is_same_v<T, membership::view_changed>) {
          events_.view_changed();
        } else if constexpr (std::is_same_v<T, membership::came>) {
          events_.came(a.node);
        } else if constexpr (std::is_same_v<T, membership::went>) {
          events_.went(a.node, a.why);
        } else if constexpr (std::is_same_v<T, membership::suspected>) {
          events_.suspected(a.node);
        } else if constexpr (std::is_same_v<T, membership::refuted>) {
          events_.refuted(a.node);
        } else if constexpr (std::is_same_v<T, membership::gone>) {
          if (peer* p = peer_of(a.node)) p->is_member = false;
          events_.lost(a.node, a.why);
        } else if (peer* p = peer_of(a.node)) {
          p->is_member = true;
          const auto kept = p->session;
          if constexpr (std::is_same_v<T, membership::joined>)
            events_.joined(a.node, kept);
          else
            events_.resumed(a.node, kept);
        }
      },
      what);
}

}  // namespace troupe::detail
