// What this file is for: bytes that pass from one node to another without this one: who is told to keep them, who to pull.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   this node --tasks (gaps with a lender)--> borrower --pull--> lender --bytes_pulled--> borrower
//             --lend-----------------------------------------^
//
// Placement has decided who lends (choose_sources). What is lent takes its place in the order of the lender's messages,
// so it is what the task is to read; a pull that comes before it waits there. Each is for one pull. If the lender has not
// got what it would lend, or goes, or the two do not reach each other, the task comes back and its data comes from here.
#include <algorithm>
#include <optional>

#include <troupe/error.hpp>

#include "actors/logic/data/directory.hpp"
#include "actors/remote_node/actor.hpp"
#include "actors/wire/node_names.hpp"

namespace troupe::detail {

node_actor* node_actor::at(memory_space s) const {
  const auto found = std::ranges::find_if(all_, [&](const node_actor* n) { return n->facts_.space == s; });
  return found == all_.end() ? nullptr : *found;
}

std::optional<node_id> node_actor::lender_id() const {
  std::lock_guard hold(id_lock_);
  return id_;
}

// False: one of those who should lend has gone.
bool node_actor::find_lenders(const task_record& t) {
  lenders_.clear();
  if (!t.extra) return true;
  for (const tile_source& s : t.extra->pulls) {
    node_actor* const who = at(s.space);
    const std::optional<node_id> id = who ? who->lender_id() : std::nullopt;
    if (!id) return false;
    lenders_.push_back({s.array, s.tile, s.version, who, *id});
  }
  return true;
}

void node_actor::ask_to_lend(job& j, wire::gap& g, const array_core& a) {
  for (const lender& l : lenders_) {
    if (l.array != &a || l.tile != g.tile) continue;
    g.from = l.id;
    g.lent = all_.front()->last_lent_.fetch_add(1, std::memory_order_relaxed) + 1;  // no two of this runtime's
    j.lent.push_back({l.who, l.id, g.lent});
    orders_.push_back({l.who, l.id, g.lent, a.id, l.tile, l.version, g.where, this});
    return;
  }
}

// ---- the lender -----------------------------------------------------------------------------------------------------

void node_actor::lend(const lend_order& o) {
  {
    std::lock_guard hold(lock_);
    if (session_ && try_to_lend(o)) return;
    // What is to be passed on may still stand in line to be sent there.
    if (session_ && queued() != 0) {
      waiting_lends_.push_back(o);
      return;
    }
  }
  o.borrower->tell_no_pull(o);
}

bool node_actor::try_to_lend(const lend_order& o) {
  const auto known = arrays_.find(o.array);
  if (known == arrays_.end()) return false;
  const auto c = known->second.tiles.find(o.tile);
  if (c == known->second.tiles.end() || !c->second.whole || c->second.version != o.version) return false;
  flush();  // it comes after what has been sent before
  net::writer frame;
  frame.fixed(wire::kind::lend);
  wire::put(frame, wire::box_request{o.number, o.array, {o.tile, o.where}});
  session_->send(frame.view());
  return true;
}

void node_actor::try_waiting_lends() {
  if (waiting_lends_.empty()) return;
  const bool more = session_ && queued() != 0;
  std::erase_if(waiting_lends_, [&](const lend_order& o) {
    if (session_ && try_to_lend(o)) return true;
    if (!more) refused_lends_.push_back(o);
    return !more;
  });
}

void node_actor::unlend(std::uint64_t number) {
  std::lock_guard hold(lock_);
  std::erase_if(waiting_lends_, [&](const lend_order& o) { return o.number == number; });
  if (!session_) return;
  net::writer frame;
  frame.fixed(wire::kind::unlend);
  frame.varint(number);
  session_->send(frame.view());
}

// ---- the borrower ---------------------------------------------------------------------------------------------------

void node_actor::tell_no_pull(const lend_order& o) {
  std::lock_guard hold(lock_);
  send_no_pull(o.number, o.lender_id);
}

void node_actor::send_no_pull(std::uint64_t number, const node_id& by) {
  if (!session_) return;
  net::writer frame;
  frame.fixed(wire::kind::no_pull);
  frame.varint(number);
  wire::put(frame, by);
  session_->send(frame.view());
}

// The task has ended without having run: what was kept for it may still wait to be pulled.
void node_actor::take_back_lends(job& j) {
  if (j.lent.empty()) return;
  for (const job::loan& l : j.lent) {
    unlends_.emplace_back(l.lender, l.number);
    send_no_pull(l.number, l.id);
  }
  j.task->extra->no_pulls = true;
}

// It may come back, as another process or with nothing of what it had: nobody would answer then.
void node_actor::lender_gone(const node_actor& who) {
  std::lock_guard hold(lock_);
  for (const job& j : jobs_)
    if (j.task)
      for (const job::loan& l : j.lent)
        if (l.lender == &who) send_no_pull(l.number, l.id);
}

// What was to come from another node has not.
void node_actor::note_unfilled(net::reader& from) {
  for (const wire::box_request& r : wire::take_requests(from)) {
    const auto known = arrays_.find(r.array);
    if (known == arrays_.end()) continue;  // forgotten meanwhile
    if (r.what.tile >= known->second.core->tile_count)
      throw error(errc::bad_frame, "a tile that its array does not have");
    if (copy& c = known->second.tiles[r.what.tile]; !c.dirty) c.forget();
  }
}

// Without the lock: each of these takes another one's.
void node_actor::settle_lends(std::span<const lend_order> orders, std::span<const lend_order> refused,
                              std::span<const std::pair<node_actor*, std::uint64_t>> unlends) {
  for (const lend_order& o : orders) o.lender->lend(o);
  for (const lend_order& o : refused) o.borrower->tell_no_pull(o);
  for (const auto& [who, number] : unlends) who->unlend(number);
}

}  // namespace troupe::detail
