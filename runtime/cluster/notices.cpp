// What this file is for: what members tell each other unasked, how busy they are, and how long an answer takes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   every 250 ms: --load--> members to which it is new       a few in turn: --ping--> member --pong-->
#include <algorithm>

#include "actors/wire/node_names.hpp"
#include "runtime/cluster/node_set.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

namespace {

using namespace std::chrono_literals;

constexpr auto tell_every = 250ms;
constexpr std::size_t told_max = 64;      // members that are told at a time; if there are more, in turn
constexpr std::size_t company_first = 8;  // links beyond a mesh at first; more if there is work
constexpr auto ping_every = 1s;           // each member
constexpr int pings_max = 8;              // at a time
// A member's reported work for others is believed for as long as it is to take, but not for longer than this.
constexpr auto believed_max = 10s;
// Interval within which the same description is sent again: to describe a node costs more than to ask.
constexpr auto described_every = 20ms;

}  // namespace

void node_set::tell_again() {
  std::vector<peer_ptr> all;
  {
    std::lock_guard hold(lock_);
    for (const auto& [id, p] : peers_)
      if (p->has_descriptor) all.push_back(p);
  }
  if (all.size() > told_max) {
    turn_ %= all.size();
    std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(turn_), all.end());
    all.resize(told_max);
    turn_ += told_max;
  }
  if (!all.empty()) {
    tell_load(all);
    ping(all);
    check_links(all);
  }
  look_for_links();
  transport_->at(transport_->now() + tell_every, [this] { tell_again(); });
}

void node_set::tell_load(std::span<const peer_ptr> to) {
  std::vector<const task_listener*> owners;
  for (const peer_ptr& p : to) owners.push_back(p->service->listener());
  const load_report l = engine_.load(owners);
  for (std::size_t i = 0; i < to.size(); ++i) {
    wire::load_notice now;
    now.busy = static_cast<std::uint32_t>(l.busy);
    now.queued = l.queued;
    now.others_us = static_cast<std::uint64_t>(l.others[i].count() / 1000);
    if (now == to[i]->told_load) continue;
    to[i]->told_load = now;
    net::writer frame;
    wire::put(frame, now);
    to[i]->line->send(frame.view());
  }
}

// Doubles the number of linked members that may take tasks, as long as this node has more tasks than it can begin.
void node_set::look_for_links() {
  if (cluster_->members().is_mesh() || links_wanted_ >= places_.size()) return;
  if (links_wanted_ != 0 && (!options_.give_work || engine_.load({}).queued == 0)) return;
  links_wanted_ = std::min(std::max(company_first, 2 * links_wanted_), places_.size());
  cluster_->want_links(links_wanted_);
}

void node_set::ping(std::span<const peer_ptr> all) {
  const auto now = transport_->now();
  std::vector<peer*> due;
  for (const peer_ptr& p : all)
    if (!p->suspect && now - p->pinged >= ping_every) due.push_back(p.get());
  const auto end = due.begin() + std::min<std::ptrdiff_t>(pings_max, static_cast<std::ptrdiff_t>(due.size()));
  std::ranges::partial_sort(due, end, {}, &peer::pinged);
  for (auto p = due.begin(); p != end; ++p) {
    (*p)->pinged = now;
    net::writer frame;
    wire::put_numbered(frame, wire::kind::ping, ++(*p)->pings);
    (*p)->line->send(frame.view());
  }
}

void node_set::hear(peer& p, wire::kind what, net::reader& from) {
  switch (what) {
    case wire::kind::load:
      hear_load(p, wire::take_load(from));
      break;
    case wire::kind::ping: {
      net::writer frame;
      wire::put_numbered(frame, wire::kind::pong, wire::take_number(from));
      p.line->send(frame.view());
      break;
    }
    case wire::kind::pong: {
      if (wire::take_number(from) != p.pings) break;  // too late to tell anything
      const auto took = transport_->now() - p.pinged;
      std::chrono::nanoseconds least{};
      {
        std::lock_guard hold(lock_);
        p.trips.add(took);
        least = p.trips.least();
      }
      if (const std::shared_ptr<node> place = place_of(p)) place->know_round_trip(least);
      break;
    }
    case wire::kind::describe:
      answer(p, wire::take_number(from));
      break;
    default:
      note_answer(p, wire::take_self(from));
  }
}

// Takes a member's reported work for others. Work is done between two notices, so it is believed only for as long as it
// was to take.
void node_set::hear_load(peer& p, const wire::load_notice& l) {
  const peer_ptr kept = find(name_of(p.line->peer().id));
  const std::shared_ptr<node> place = place_of(p);
  if (kept.get() != &p || !place) return;
  const std::chrono::microseconds busy(
      std::min(l.others_us, static_cast<std::uint64_t>(std::chrono::microseconds(believed_max).count())));
  const std::uint64_t number = ++p.loads_heard;
  place->know_others(busy);
  if (busy == 0us) return;
  transport_->at(transport_->now() + busy, [this, still = std::weak_ptr(kept), number] {
    const peer_ptr q = still.lock();
    if (!q || q->loads_heard != number || find(name_of(q->line->peer().id)) != q) return;
    if (const std::shared_ptr<node> there = place_of(*q)) there->know_others({});
  });
}

void node_set::answer(peer& p, std::uint64_t number) {
  const auto now = transport_->now();
  if (described_ == net::transport::time_point() || now - described_ >= described_every) {
    last_descriptor_ = describe();
    described_ = now;
  }
  last_descriptor_.number = number;
  net::writer frame;
  wire::put(frame, last_descriptor_);
  p.line->send(frame.view());
}

}  // namespace troupe::detail
