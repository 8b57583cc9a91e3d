// What this file is for: bytes of another node's arrays that come from a third node, or that a third node gets from here.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   owner --tasks: pull it there--> borrower --pull--> lender --bytes_pulled--> borrower
//   owner --lend------------------------------^
//
// What is lent is read by a host access in its place in the order of the owner's messages, so writers wait until it has
// been pulled, once. A pull may come before or after that. What cannot be had fails the access that was to be filled, and
// the tasks behind it go back to the owner.
#include <algorithm>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/node_service/actor.hpp"
#include "actors/wire/node_names.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {
// The most pulls kept that came before their loans.
constexpr std::size_t early_max = 65536;
}  // namespace

// ---- the borrower ---------------------------------------------------------------------------------------------------

// Asks a third node for the box of an open door.
void guest_actor::ask_other(door& d) {
  wire::pull_request r;
  r.owner = name_of(session_->peer().id);
  r.lent = d.what_box.lent;
  r.number = d.number;
  r.where = d.what_box.where;
  net::writer frame;
  wire::put(frame, r);
  to_ask_.emplace_back(d.what_box.from, std::move(frame));
}

// Sends requests to third nodes. Called without the lock.
void guest_actor::ask_others(std::vector<std::pair<node_id, net::writer>> all) {
  std::vector<node_id> unknown;
  for (const auto& [whom, frame] : all) {
    const std::shared_ptr<net::session> line = lines_(whom);
    if (!line || !line->send(frame.view())) unknown.push_back(whom);
  }
  for (const node_id& n : unknown) give_up(n, false);  // its connection may not have ended yet
}

// Returns the door that bytes of a third node are for; null if it has none any more.
guest_actor::door* guest_actor::pulling(std::uint64_t number, std::uint64_t lent, const node_id& from) {
  const auto d = coming_.find(number);
  if (d == coming_.end() || (left_ && !d->second->placed)) return nullptr;
  const wire::gap& what = d->second->what_box;
  return lent != 0 && what.lent == lent && what.from == from ? d->second : nullptr;
}

net::pieces guest_actor::pulled_arriving(const wire::pulled_head& h, std::uint64_t bytes, const node_id& from) {
  std::lock_guard hold(lock_);
  door* const d = pulling(h.number, h.lent, from);
  return d ? give_room(*d, bytes) : net::pieces();
}

void guest_actor::pulled_arrived(const wire::pulled_head& h, const node_id& from, bool whole) {
  std::unique_lock hold(lock_);
  door* const d = pulling(h.number, h.lent, from);
  if (!d || !std::exchange(d->writing, false) || !whole) return;
  coming_.erase(h.number);
  close(*d);
  work_off(hold);
}

void guest_actor::cannot_pull(const wire::pull_refusal& r, const node_id& by) {
  std::unique_lock hold(lock_);
  if (door* const d = pulling(r.number, r.lent, by); d && !d->placed)
    never_comes(*d, std::make_exception_ptr(error(errc::data_lost, r.text)));
  work_off(hold);
}

void guest_actor::no_pull(std::uint64_t lent, const node_id& by) {
  for (auto& [t, d] : doors_)
    // What is on its way goes on being written to its place: it comes, or its sender is lost.
    if (d->what == door::use::in && d->what_box.lent == lent && d->what_box.from == by && !d->placed)
      never_comes(*d, std::make_exception_ptr(error(errc::data_lost, "it is not where it was to be pulled from")));
}

void guest_actor::lost(const node_id& who) { give_up(who, true); }

void guest_actor::give_up(const node_id& who, bool has_ended) {
  const auto why = std::make_exception_ptr(error(errc::node_lost, "the node that was to send it is not there"));
  std::unique_lock hold(lock_);
  for (auto& [t, d] : doors_)
    if (d->what == door::use::in && d->what_box.lent != 0 && d->what_box.from == who && (has_ended || !d->placed))
      never_comes(*d, why);
  std::erase_if(early_, [&](const auto& e) { return name_of(e.second.line->peer().id) == who; });
  work_off(hold);
}

void guest_actor::never_comes(door& d, const std::exception_ptr& why) {
  if (d.never) return;
  d.never = why;
  if (d.open) fail(d);
}

// Ends an open door in error: its box and the tasks behind it fail and go back to the owner.
void guest_actor::fail(door& d) {
  if (!std::exchange(d.open, false)) return;
  coming_.erase(d.number);
  // Whatever the reason: what waits for it is to run again, and its data comes another way.
  d.task->error = task_error(*d.task, "host", 1, std::make_exception_ptr(error(errc::unreachable, text_of(d.never))));
  d.context->roll_back();
  if (!left_) {
    if (unfilled_.empty()) unfilled_.fixed(wire::kind::unfilled);
    wire::put(unfilled_, wire::box_request{d.number, d.array, {d.what_box.tile, d.what_box.where}});
    if (unfilled_.size() >= gathered_bytes) send(unfilled_);
  }
  to_close_.push_back(d.task);
}

// ---- the lender -----------------------------------------------------------------------------------------------------

void guest_actor::keep_for_others(const wire::box_request& r) {
  if (lends_.contains(r.number)) throw error(errc::bad_frame, "something was lent under a number that is in use");
  const auto a = arrays_.find(r.array);
  if (a == arrays_.end()) throw error(errc::bad_frame, "a tile of an array that was not named before");
  check(*a->second, r.what);
  if (unlent_.contains(r.number)) return;  // the two came from different threads of the owner's
  auto d = std::make_unique<door>();
  d->what = door::use::lend;
  d->number = r.number;
  d->what_box = r.what;
  if (const auto early = early_.find(r.number); early != early_.end()) {
    d->whom = std::move(early->second);
    early_.erase(early);
  }
  lends_.emplace(r.number, d.get());
  open_door(*a->second, access_mode::read, r.what.where, std::move(d));
}

void guest_actor::pull(const wire::pull_request& r, const std::shared_ptr<net::session>& line) {
  std::unique_lock hold(lock_);
  const asker who{line, r.number, r.lent, r.where};
  if (const auto d = lends_.find(r.lent); d != lends_.end()) {
    door& one = *d->second;
    if (one.whom) throw error(errc::bad_frame, "what was lent once was pulled twice");
    one.whom = who;
    if (one.open) answer(one);
  } else if (left_ || unlent_.contains(r.lent) || early_.size() == early_max) {
    turn_away(who, "it is not there any more");
  } else if (!early_.emplace(r.lent, who).second) {
    throw error(errc::bad_frame, "what was lent once was pulled twice");
  }
  work_off(hold);
}

void guest_actor::answer(door& d) {
  if (d.whom->where != d.what_box.where) {
    turn_away(*d.whom, "another part of it was kept");
    close(d);
    return;
  }
  net::writer head;
  wire::put(head, wire::pulled_head{d.whom->number, name_of(session_->peer().id), d.number});
  const net::pieces body = rows_of(d.view, d.element);
  d.sending = true;
  to_send_.push_back({head.take(), {body.begin(), body.end()}, d.task, d.whom->line});
}

void guest_actor::turn_away(const asker& who, const std::string& why) {
  net::writer frame;
  wire::put(frame, wire::pull_refusal{name_of(session_->peer().id), who.lent, who.number, why});
  to_answer_.emplace_back(who.line, std::move(frame));
}

// Removes a loan whose access has ended: pulled, given up, or in error.
void guest_actor::lend_ended(door& d) {
  lends_.erase(d.number);
  const std::exception_ptr why = d.task->error ? d.task->error : d.never;
  if (why && d.whom) turn_away(*d.whom, text_of(why));
}

void guest_actor::unlend(std::uint64_t number) {
  const auto d = lends_.find(number);
  if (d == lends_.end()) {
    if (const auto early = early_.find(number); early != early_.end()) {
      turn_away(early->second, "it is not to be pulled any more");
      early_.erase(early);
    } else {
      unlent_.insert(number);  // it has been pulled, or never will be, or somebody is about to
      if (unlent_.size() > early_max) unlent_.erase(unlent_.begin());
    }
    return;
  }
  door& one = *d->second;
  if (one.sending) return;  // it is closed then
  if (!one.never) one.never = std::make_exception_ptr(error(errc::cancelled, "it is not to be pulled any more"));
  if (one.open) close(one);
}

// Ends all loans, as the owner has gone.
void guest_actor::drop_lends() {
  for (const auto& [number, d] : lends_) {
    if (d->sending) continue;
    if (!d->never) d->never = std::make_exception_ptr(error(errc::node_lost, "its owner has gone"));
    if (d->open) close(*d);
  }
  for (const auto& [number, who] : early_) turn_away(who, "its owner has gone");
  early_.clear();
}

}  // namespace troupe::detail
