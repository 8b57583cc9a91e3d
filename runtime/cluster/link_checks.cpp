// What this file is for: links that copies have not taught anything for a while are tried, with a few bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   --check (48 KiB)--> member --checked (as much)-->    three times; of each way the fastest counts
//
// A link that is believed to be slow is given no copies, so copies never teach that it has become fast: these checks
// do. They only correct costs that were believed too high; see cost_model::correct.
#include <algorithm>
#include <memory>
#include <random>

#include <troupe/error.hpp>

#include "actors/wire/node_names.hpp"
#include "runtime/cluster/node_set.hpp"
#include "runtime/engine.hpp"

namespace troupe::detail {

namespace {

constexpr int checks_each = 3;  // a busy machine makes checks slower, never faster: the fastest is what the link does
constexpr int rarer_max = 32;   // intervals, where nothing is learned otherwise

// Returns bytes that cannot be compressed.
std::span<const std::byte> noise() {
  static const std::vector<std::byte> bytes = [] {
    std::minstd_rand random(1);
    std::vector<std::byte> all(wire::check_bytes);
    for (std::byte& b : all) b = static_cast<std::byte>(random() >> 8);
    return all;
  }();
  return bytes;
}

}  // namespace

void node_set::check_links(std::span<const peer_ptr> all) {
  const net::transport::duration after = options_.link_check_after;
  if (after.count() == 0) return;
  const auto now = transport_->now();
  for (const peer_ptr& p : all) {
    const std::shared_ptr<node> place = place_of(*p);
    if (!place || p->suspect) continue;
    peer::link_check& c = p->check;
    {
      std::lock_guard hold(lock_);
      if (c.last == net::transport::time_point()) {
        c.last = now;
        c.every = after;
      }
      if (c.left != 0 || now - c.last < c.every || p->trips.median().count() == 0) continue;
    }
    const std::uint32_t taught = place->learned_transfers();
    const bool is_idle = place->is_idle();
    {
      std::lock_guard hold(lock_);
      const bool was_taught = taught != c.taught;
      c.taught = taught;
      if (was_taught) {
        c.last = now;
        c.every = after;
      }
      if (was_taught || !is_idle) continue;
      c.last = now;
      c.every = std::min(2 * c.every, rarer_max * after);
      c.left = checks_each;
      c.best_there = c.best_back = {};
    }
    send_check(p);
  }
}

void node_set::send_check(const peer_ptr& p) {
  std::uint64_t number = 0;
  {
    std::lock_guard hold(lock_);
    number = ++p->check.number;
    p->check.begun = transport_->now();
    p->check.there = {};
  }
  net::writer head;
  wire::put_numbered(head, wire::kind::check, number);
  p->line->send_bulk(head.view(), {noise()}, [this, to = std::weak_ptr(p), number](bool all) {
    const peer_ptr q = to.lock();
    if (!q) return;
    std::lock_guard hold(lock_);
    peer::link_check& c = q->check;
    if (c.number != number || c.left == 0) return;
    if (all)
      c.there = transport_->now() - c.begun;
    else
      c.left = 0;
  });
}

// Returns the room for a check's bytes, which are not looked at: they may be overwritten, or thrown away.
net::pieces node_set::check_arriving(peer& p, wire::kind what, std::uint64_t bytes) {
  if (bytes != wire::check_bytes) throw error(errc::protocol_error, "a link is tried with another size");
  std::lock_guard hold(lock_);
  peer::check_room& room = p.check_rooms[what == wire::kind::check ? 0 : 1];
  if (room.in_use) return {};
  room.in_use = true;
  room.bytes.resize(wire::check_bytes);
  return {std::span(room.bytes)};
}

void node_set::check_arrived(peer& p, std::span<const std::byte> head, bool whole) {
  const wire::kind what = wire::kind_of(head);
  net::reader from(head.subspan(1));
  const std::uint64_t number = wire::take_number(from);
  {
    std::lock_guard hold(lock_);
    p.check_rooms[what == wire::kind::check ? 0 : 1].in_use = false;
  }
  if (!whole) return;
  if (what == wire::kind::checked) {
    if (const peer_ptr kept = find(name_of(p.line->peer().id)); kept.get() == &p) check_ended(kept, number);
    return;
  }
  net::writer answer;
  wire::put_numbered(answer, wire::kind::checked, number);
  p.line->send_bulk(answer.view(), {noise()}, [](bool) {});
}

void node_set::check_ended(const peer_ptr& p, std::uint64_t number) {
  net::transport::duration there{}, back{}, trip{};
  bool again = false;
  {
    std::lock_guard hold(lock_);
    peer::link_check& c = p->check;
    if (c.left == 0 || c.number != number) return;  // of an earlier connection
    const net::transport::duration took = transport_->now() - c.begun;
    const net::transport::duration out = c.there.count() != 0 ? c.there : took / 2, in = took - out;
    const auto shorter = [](auto& best, auto t) { best = best.count() == 0 ? t : std::min(best, t); };
    shorter(c.best_there, out);
    shorter(c.best_back, in);
    again = --c.left != 0;
    there = c.best_there;
    back = c.best_back;
    trip = p->trips.median();
  }
  if (again) return send_check(p);
  if (const std::shared_ptr<node> place = place_of(*p)) place->correct_link(wire::check_bytes, there, back, trip);
}

}  // namespace troupe::detail
