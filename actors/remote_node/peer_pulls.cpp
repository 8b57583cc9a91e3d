// What this file is for: bytes that pass from one node to another without this one: which keeps them, which pulls.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   this node --tasks (gaps with a lender)--> borrower --pull--> lender --bytes_pulled--> borrower
//             --lend-----------------------------------------^
//
// Placement has decided which node lends (choose_sources). A lend takes its place in the order of the lender's
// messages, so the bytes are those that the task is to read; a pull that comes before its lend waits there. Each lend
// is for one pull. If the lender does not have what it would lend, or goes, or the two do not reach each other, the
// task comes back and its data comes from this node.
#include <algorithm>
#include <optional>

#include <troupe/error.hpp>

#include "actors/logic/data/directory.hpp"
#include "actors/remote_node/actor.hpp"
#include "actors/wire/node_names.hpp"

namespace troupe::detail {

// Returns the actor of the node that has, or had, a memory space.
node_actor& node_actor::at(memory_space s) const {
  return **std::ranges::find_if(all_, [&](const node_actor* n) { return n->facts_.space == s; });
}

// Looks up the nodes that are to lend to the task; false if one of them has gone.
bool node_actor::find_lenders(const task_record& t) {
  lends_.begin_task();
  if (!t.extra) return true;
  for (const tile_source& s : t.extra->pulls) {
    const auto who = std::ranges::find_if(all_, [&](const node_actor* n) { return n->facts_.space == s.space; });
    const std::optional<node_id> id = who != all_.end() ? (*who)->occupant_.id() : std::nullopt;
    if (!id) return false;
    lends_.add_lender(s.array, s.tile, s.version, s.space, *id);
  }
  return true;
}

// Has a box pulled from the node that lends its tile to the task, if there is one.
void node_actor::ask_to_lend(job& j, wire::gap& g, const array_core& a) {
  if (!lends_.has_lender(a, g.tile)) return;
  // All nodes share one counter: no two lends of this runtime have the same number.
  const std::uint64_t number = all_.front()->last_lent_.fetch_add(1, std::memory_order_relaxed) + 1;
  const lend_order& o = lends_.order(a, g.tile, g.where, number, facts_.space);
  g.from = o.lender_id;
  g.lent = number;
  j.lent.push_back({o.lender, o.lender_id, number});
}

// ---- the lender -----------------------------------------------------------------------------------------------------

void node_actor::lend(const lend_order& o) {
  {
    std::lock_guard hold(lock_);
    if (occupant_.has_session() && try_to_lend(o)) return;
    // The task that makes the tile, or reads it there, may still be queued to be sent.
    if (occupant_.has_session() && queued() != 0) return lends_.wait(o);
  }
  at(o.borrower).tell_no_pull(o);
}

bool node_actor::try_to_lend(const lend_order& o) {
  if (!known_.has_version(o.array, o.tile, o.version)) return false;
  flush();  // it comes after what has been sent before
  net::writer frame;
  frame.fixed(wire::kind::lend);
  wire::put(frame, wire::box_request{o.number, o.array, {o.tile, o.where}});
  occupant_.send(frame);
  return true;
}

void node_actor::try_waiting_lends() {
  lends_.retry(occupant_.has_session() && queued() != 0,
               [&](const lend_order& o) { return occupant_.has_session() && try_to_lend(o); });
}

void node_actor::unlend(std::uint64_t number) {
  std::lock_guard hold(lock_);
  lends_.forget(number);
  if (!occupant_.has_session()) return;
  net::writer frame;
  frame.fixed(wire::kind::unlend);
  frame.varint(number);
  occupant_.send(frame);
}

// ---- the borrower ---------------------------------------------------------------------------------------------------

void node_actor::tell_no_pull(const lend_order& o) {
  std::lock_guard hold(lock_);
  send_no_pull(o.number, o.lender_id);
}

void node_actor::send_no_pull(std::uint64_t number, const node_id& by) {
  if (!occupant_.has_session()) return;
  net::writer frame;
  frame.fixed(wire::kind::no_pull);
  frame.varint(number);
  wire::put(frame, by);
  occupant_.send(frame);
}

// Gives up what lenders keep for a task that has ended without having run: it may still wait to be pulled.
void node_actor::take_back_lends(job& j) {
  if (j.lent.empty()) return;
  for (const job::loan& l : j.lent) {
    lends_.give_up(l.lender, l.number);
    send_no_pull(l.number, l.id);
  }
  j.task->extra->no_pulls = true;
}

// A lender has gone: pulls from it are called off. The node may come back, as another process or with nothing of what
// it had, and would not answer them.
void node_actor::lender_gone(const node_actor& who) {
  std::lock_guard hold(lock_);
  jobs_.each([&](const job& j) {
    for (const job::loan& l : j.lent)
      if (l.lender == who.facts_.space) send_no_pull(l.number, l.id);
  });
}

// Takes the names of tiles that were to come from another node and have not.
void node_actor::note_unfilled(net::reader& from) {
  for (const wire::box_request& r : wire::take_requests(from)) known_.note_unfilled(r.array, r.what.tile);
}

// Tells the actors of other nodes, each of which has a lock of its own.
void node_actor::settle_lends(const lends::news& n) {
  for (const lend_order& o : n.orders) at(o.lender).lend(o);
  for (const lend_order& o : n.refused) at(o.borrower).tell_no_pull(o);
  for (const auto& [who, number] : n.given_up) at(who).unlend(number);
}

}  // namespace troupe::detail
