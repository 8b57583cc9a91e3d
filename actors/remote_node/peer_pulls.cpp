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

// Looks up what placement has told about the task, and the nodes that are to lend to it; false if one of them has gone,
// or does not lend.
bool node_actor::find_lenders(const task_record& t) {
  lends_.begin_task();
  if (!t.extra) return true;
  const std::vector<promise> promised = queue_.take_expected(t);
  bool all_there = true;
  for (const promise& p : promised) {
    const node_actor& who = at(p.lender);
    const std::optional<node_id> id = who.occupant_.id();
    lends_.add_promised(p, id.value_or(node_id{}));
    all_there = all_there && id && p.number != 0 && who.occupant_.times() == p.stay &&
                !known_.is_dirty(p.array->id, p.tile) &&
                (!p.shared || known_.is_pulled(p.array->id, p.tile, p.where, p.writer) ||
                 std::ranges::any_of(promised, [&](const promise& o) { return o.number == p.number && !o.shared; }));
  }
  if (!all_there) {
    give_up_unused();
    return false;
  }
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
  // Placement numbers what is promised with odd numbers.
  const std::uint64_t number = 2 * (all_.front()->last_lent_.fetch_add(1, std::memory_order_relaxed) + 1);
  const lend_order& o = lends_.order(a, g.tile, g.where, number, facts_.space);
  g.from = o.lender_id;
  g.lent = number;
  j.lent.push_back({o.lender, o.lender_id, number});
}

// Has a box pulled that another node is about to have, if the task is promised it.
bool node_actor::pull_promised(job& j, wire::access_descriptor& w, const array_core& a, std::uint32_t tile,
                               const logic::box4& where) {
  const std::optional<lends::promised_box> p = lends_.take_promised(a, tile, where);
  if (!p) return false;
  if (known_.is_pulled(a.id, tile, where, p->what.writer)) {
    known_.touches(a, tile, j.id);
    if (!p->what.shared) lends_.give_up(p->what.lender, p->what.number);  // the task has the box twice
    return true;
  }
  wire::gap& g = w.gaps.emplace_back();
  g.tile = tile;
  g.where = where;
  g.from = p->id;
  g.lent = p->what.number;
  j.lent.push_back({p->what.lender, p->id, p->what.number});
  known_.pulls_ahead(a, tile, where, p->what.writer, j.id);
  return true;
}

// Has nobody keep what the task that is being encoded was promised and does not pull.
void node_actor::give_up_unused() {
  for (const lends::promised_box& p : lends_.take_unused())
    if (p.what.number != 0 && !p.what.shared) lends_.give_up(p.what.lender, p.what.number);
}

// Has nobody keep what tasks were promised that placement has taken back.
void node_actor::give_up_unwanted() {
  for (const promise& p : queue_.take_unwanted()) lends_.give_up(p.lender, p.number);
}

// Has nobody keep what a task is promised that is not sent.
void node_actor::give_up_promises(const task_record& t) {
  give_up_unused();
  for (const promise& p : queue_.take_expected(t))
    if (p.number != 0 && !p.shared) lends_.give_up(p.lender, p.number);
}

// ---- the lender -----------------------------------------------------------------------------------------------------

// Has the node keep what has been promised of what it has been sent: before it is sent anything that was handed over
// later. `next`: the task that is about to be sent, or null.
void node_actor::keep_promises(const task_record* next) {
  for (const promise& p : queue_.take_to_keep()) {
    const node_id self = occupant_.id().value_or(node_id{});
    const lend_order o{p.lender, self, p.number, p.array_id, p.tile, 0, p.where, p.borrower, p.writer};
    const bool is_here = occupant_.has_session() && occupant_.times() == p.stay;
    if (is_here && try_to_lend(o)) continue;
    const bool is_to_come = is_here && ((next && next->sequence == p.writer) || queue_.has_call(p.writer));
    is_to_come ? lends_.wait_for_writer(o) : lends_.refuse(o);
  }
}

// The task has been sent, or will not be.
void node_actor::keep_promises_of(std::uint64_t writer) {
  for (const lend_order& o : lends_.take_waiting_for(writer))
    if (!occupant_.has_session() || !try_to_lend(o)) lends_.refuse(o);
}

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
  const std::uint64_t writer = o.writer != 0 ? known_.written_by(o.array, o.tile, o.writer) : 0;
  if (o.writer != 0 ? writer == 0 : !known_.has_version(o.array, o.tile, o.version)) return false;
  flush();  // it comes after what has been sent before
  net::writer frame;
  frame.fixed(o.writer != 0 ? wire::kind::lend_written : wire::kind::lend);
  if (o.writer != 0) frame.varint(writer);
  wire::put(frame, wire::box_request{o.number, o.array, {o.tile, o.where}});
  occupant_.send(frame);
  return true;
}

// Once nothing is queued any more, nothing that orders wait for will be sent.
void node_actor::try_waiting_lends() {
  if (queued() == 0) lends_.refuse_writers();
  lends_.retry(occupant_.has_session() && queued() != 0,
               [&](const lend_order& o) { return occupant_.has_session() && try_to_lend(o); });
}

void node_actor::unlend(std::uint64_t number) {
  queue_.forget(number);
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
  if (queue_.break_promise(o.number)) return;  // the task that was to pull it has not been sent
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
