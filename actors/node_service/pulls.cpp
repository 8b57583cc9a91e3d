// What this file is for: bytes of another node's arrays that come from a third node, or that one gets from here.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   owner --tasks: pull it there--> borrower --pull--> lender --bytes_pulled--> borrower
//   owner --lend, lend_written----------------^
//
// A box that is lent is read by a host access in its place in the order of the owner's messages, so writers wait until
// it has been pulled, once. A pull may come before or after that. A box that cannot be had fails the access that was to
// be filled, and the tasks behind it go back to the owner.
#include <algorithm>
#include <utility>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/node_service/actor.hpp"
#include "actors/wire/node_names.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

// ---- the borrower ---------------------------------------------------------------------------------------------------

// Asks a third node for the box of an open transfer.
void node_service_actor::ask_other(const transfer& x) {
  wire::pull_request r;
  r.owner = name_of(session_->peer().id);
  r.lent = x.what_box.lent;
  r.number = x.number;
  r.where = x.what_box.where;
  net::writer frame;
  wire::put(frame, r);
  out_.request(x.what_box.from, std::move(frame));
}

// Returns the transfer that bytes of a third node are for; null if it has none any more.
transfer* node_service_actor::pulling(std::uint64_t number, std::uint64_t lent, const node_id& from) const {
  transfer* const x = transfers_.awaiting(number);
  if (!x || (left_ && !x->placed)) return nullptr;
  return lent != 0 && x->what_box.lent == lent && x->what_box.from == from ? x : nullptr;
}

void node_service_actor::no_pull(std::uint64_t lent, const node_id& by) {
  transfers_.each([&](transfer& x) {
    // Bytes under way go on being written to their place: they come, or their sender is lost.
    if (x.what == transfer::use::in && x.what_box.lent == lent && x.what_box.from == by && !x.placed)
      never_comes(x, std::make_exception_ptr(error(errc::data_lost, "it is not where it was to be pulled from")));
  });
}

void node_service_actor::never_comes(transfer& x, const std::exception_ptr& why) {
  if (x.never) return;
  x.never = why;
  if (x.open) fail(x);
}

// Ends an open transfer in error: its box and the tasks behind it fail and go back to the owner.
void node_service_actor::fail(transfer& x) {
  if (!std::exchange(x.open, false)) return;
  transfers_.await_no_more(x);
  // The task that waits for the transfer is to run again, and its data comes another way.
  x.task->error = task_error(*x.task, "host", 1, std::make_exception_ptr(error(errc::unreachable, text_of(x.never))));
  x.context->roll_back();
  if (!left_) out_.tell_unfilled({x.number, x.array, {x.what_box.tile, x.what_box.where}});
  later_.close(*x.task);
}

// ---- the lender -----------------------------------------------------------------------------------------------------

// `writer`: the task that is to leave the box as it is to be kept; 0: it is there.
void node_service_actor::keep_for_others(const wire::box_request& r, std::uint64_t writer) {
  const bool wanted = loans_.wants(r.number);
  const auto a = arrays_.find(r.array);
  if (a == arrays_.end()) throw error(errc::protocol_error, "a tile of an array that was not named before");
  check(*a->second, r.what);
  if (!wanted) return;
  if (tasks_.was_refused(writer)) return does_not_lend(r.number, "what was to write it does not run here");
  auto x = std::make_unique<transfer>();
  x->what = transfer::use::lend;
  x->number = r.number;
  x->what_box = r.what;
  loans_.add(r.number, begin(*a->second, access_mode::read, r.what.where, std::move(x)));
}

// Sends an open loan to its borrower.
void node_service_actor::answer(transfer& x) {
  if (x.whom->where != x.what_box.where) {
    turn_away(*x.whom, "another part of it was kept");
    return close(x);
  }
  net::writer head;
  wire::put(head, wire::pulled_head{x.whom->number, name_of(session_->peer().id), x.number});
  const net::pieces body = rows_of(x.view, x.element);
  std::size_t bytes = 0;
  for (const auto& row : body) bytes += row.size();
  if (bytes <= wire::inline_max) {  // a message of its own takes less time than a transfer, which has to be begun
    std::vector<std::byte> all;
    all.reserve(bytes);
    for (const auto& row : body) all.insert(all.end(), row.begin(), row.end());
    head.bytes(all);
    out_.answer(x.whom->line, std::move(head));
    return close(x);
  }
  x.sending = true;
  out_.add({head.take(), {body.begin(), body.end()}, x.task, x.whom->line});
}

void node_service_actor::turn_away(const borrower& who, const std::string& why) {
  net::writer frame;
  wire::put(frame, wire::pull_refusal{name_of(session_->peer().id), who.lent, who.number, why});
  out_.answer(who.line, std::move(frame));
}

// Removes a loan whose access has ended: pulled, given up, or in error.
void node_service_actor::lend_ended(const transfer& x) {
  loans_.remove(x.number);
  const std::exception_ptr why = x.task->error ? x.task->error : x.never;
  if (!why) return;
  x.whom ? turn_away(*x.whom, text_of(why)) : does_not_lend(x.number, text_of(why));
}

// Turns away who pulls under that number, now or later.
void node_service_actor::does_not_lend(std::uint64_t number, const std::string& why) {
  if (const loans::taken_back t = loans_.take_back(number); t.too_early) turn_away(*t.too_early, why);
}

void node_service_actor::unlend(std::uint64_t number) {
  const loans::taken_back t = loans_.take_back(number);
  const char* const why = "it is not to be pulled any more";
  if (t.too_early) turn_away(*t.too_early, why);
  if (t.loan) end_loan(*t.loan, std::make_exception_ptr(error(errc::cancelled, why)));
}

// Ends a loan, unless it is being sent: then it is closed once that has been done.
void node_service_actor::end_loan(transfer& x, const std::exception_ptr& why) {
  if (x.sending) return;
  if (!x.never) x.never = why;
  if (x.open) close(x);
}

// Ends all loans, as the owner has gone.
void node_service_actor::drop_lends() {
  const char* const why = "its owner has gone";
  loans_.each([&](transfer& x) { end_loan(x, std::make_exception_ptr(error(errc::node_lost, why))); });
  for (const auto& [number, who] : loans_.take_early()) turn_away(who, why);
}

}  // namespace troupe::detail
