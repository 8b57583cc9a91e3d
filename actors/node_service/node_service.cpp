// What this file is for: messages of the owner, of other nodes and of placement, and what follows without the lock.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/node_service.hpp"

#include <algorithm>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/node_service/actor.hpp"
#include "actors/placement/placement.hpp"
#include "actors/wire/node_names.hpp"

namespace troupe::detail {

bool is_for_node_service(wire::kind k) {
  switch (k) {
    case wire::kind::tasks:
    case wire::kind::gaps:
    case wire::kind::cancel:
    case wire::kind::recall:
    case wire::kind::fetch_home:
    case wire::kind::snapshot:
    case wire::kind::forget:
    case wire::kind::released:
    case wire::kind::lend:
    case wire::kind::lend_written:
    case wire::kind::unlend:
    case wire::kind::no_pull:
    case wire::kind::bytes_in:
    case wire::kind::bytes_pushed:
      return true;
    default:
      return false;
  }
}

// ---- what is done without the lock ---------------------------------------------------------------------------------

// Takes out what has been gathered under the lock: messages to be sent and calls of placement.
node_service_actor::due node_service_actor::take_due() {
  out_.flush();
  return {later_.take(), out_.take()};
}

// Sends and calls what has been taken out, without the lock.
void node_service_actor::carry_out(due d) {
  for (const outgoing::body& b : d.out.bodies) {
    if (b.task)
      b.over->send_bulk(b.head, b.bytes, [this, t = b.task](bool) { sent(t); });
    else
      b.over->send_bulk(b.head, b.bytes, [kept = b.copied](bool) {});
  }
  for (const auto& [line, frame] : d.out.answers) line->send(frame.view());
  if (!d.calls.close.empty()) placement_.report_done(d.calls.close, nullptr);
  for (task_record* t : d.calls.submit) placement_.submit(t, true);
  for (task_record* t : d.calls.released) detail::release(t);
  for (array_core* a : d.calls.dropped) detail::release(a);
  if (!d.out.requests.empty()) ask_others(std::move(d.out.requests));
}

// Closes a transfer whose bytes have been sent. On the transport's bulk thread, or on the thread that sends.
void node_service_actor::sent(task_record* t) {
  std::unique_lock hold(lock_);
  if (transfer* const x = transfers_.of(t)) {
    x->sending = false;
    close(*x);
  }
  due d = take_due();
  hold.unlock();
  carry_out(std::move(d));
}

// Sends requests to third nodes, or keeps them until there is a session with their node. Called without the lock.
void node_service_actor::ask_others(std::vector<std::pair<node_id, net::writer>> all) {
  std::vector<node_id> asked;
  for (auto& [whom, frame] : all) {
    unsent_.add(whom, std::move(frame));
    if (std::ranges::find(asked, whom) == asked.end()) asked.push_back(whom);
  }
  for (const node_id& n : asked) linked(n);  // kept first: the session may begin now
}

// ---- from the owner ------------------------------------------------------------------------------------------------

void node_service_actor::frame(std::span<const std::byte> bytes) {
  check_fault();
  net::reader from(bytes);
  const auto what = from.fixed<wire::kind>();
  std::unique_lock hold(lock_);
  if (left_) return;
  switch (what) {
    case wire::kind::tasks:
      wire::each_of_tasks(
          from, [this](const wire::array_descriptor& c) { take_in(c); },
          [this](const wire::task_descriptor& c) { start(c); });
      break;
    case wire::kind::gaps:
      take_in(wire::take_gaps(from));
      break;
    case wire::kind::cancel:
      for (const std::uint64_t id : wire::take_numbers(from)) tasks_.stop(id);
      break;
    case wire::kind::recall:
      for (const std::uint64_t id : wire::take_numbers(from)) recall(id);
      break;
    case wire::kind::fetch_home:
    case wire::kind::snapshot:
      for (const wire::box_request& r : wire::take_requests(from)) send_home(r, what == wire::kind::snapshot);
      break;
    case wire::kind::forget:
      for (const std::uint64_t id : wire::take_numbers(from))
        if (const auto a = arrays_.find(id); a != arrays_.end()) drop(a);
      break;
    case wire::kind::released:
      released_ = closed_;
      break;
    case wire::kind::lend:
      for (const wire::box_request& r : wire::take_requests(from)) keep_for_others(r, 0);
      break;
    case wire::kind::lend_written: {
      const std::uint64_t writer = from.varint();
      for (const wire::box_request& r : wire::take_requests(from)) keep_for_others(r, writer);
      break;
    }
    case wire::kind::unlend:
      for (const std::uint64_t number : wire::take_numbers(from)) unlend(number);
      break;
    case wire::kind::no_pull: {
      const std::uint64_t number = from.varint();
      no_pull(number, wire::take_node(from));
      break;
    }
    default:
      refuse_peer("a message of an unknown kind");
  }
  due d = take_due();
  hold.unlock();
  carry_out(std::move(d));
}

net::pieces node_service_actor::arriving(std::span<const std::byte> head, std::uint64_t bytes) {
  net::reader from(head);
  const auto what = from.fixed<wire::kind>();
  std::lock_guard hold(lock_);
  const std::uint64_t number = from.varint();
  if (left_) return {};
  if (what == wire::kind::bytes_pushed) {
    push_store::destination p = pushes_.arriving(number, bytes);
    return p.to ? give_room(*p.to, bytes) : std::move(p.kept);
  }
  transfer* const x = transfers_.awaiting(number);
  return x && x->what_box.lent == 0 ? give_room(*x, bytes) : net::pieces();
}

void node_service_actor::arrived(std::span<const std::byte> head, bool whole) {
  net::reader from(head);
  const auto what = from.fixed<wire::kind>();
  std::unique_lock hold(lock_);
  const std::uint64_t number = from.varint();
  if (what == wire::kind::bytes_pushed) {
    const push_store::arrival a = pushes_.arrived(number, whole);
    if (a.here) put_in_place(*a.here);
    if (a.written) close(*a.written);
  } else {
    transfer* const x = transfers_.awaiting(number);
    if (!x || x->what_box.lent != 0 || !std::exchange(x->writing, false) || !whole) return;
    transfers_.await_no_more(*x);
    close(*x);
  }
  due d = take_due();
  hold.unlock();
  carry_out(std::move(d));
}

// ---- from other nodes ----------------------------------------------------------------------------------------------

// Sends what is kept for a node, if there is a session with it.
void node_service_actor::linked(const node_id& who) {
  const std::shared_ptr<net::session> line = lines_(who);
  if (!line) return;
  bool sent = true;
  for (const net::writer& frame : unsent_.take(who)) sent = line->send(frame.view()) && sent;
  if (!sent) give_up(who, false);  // its connection may not have ended yet
}

void node_service_actor::give_up_link(const node_id& who) {
  if (!unsent_.take(who).empty()) give_up(who, false);
}

void node_service_actor::lost(const node_id& who) {
  unsent_.take(who);
  give_up(who, true);
}

// Gives up what was to come from a third node. `has_ended`: also what it has begun to send.
void node_service_actor::give_up(const node_id& who, bool has_ended) {
  const auto why = std::make_exception_ptr(error(errc::node_lost, "the node that was to send it is not there"));
  std::unique_lock hold(lock_);
  transfers_.each([&](transfer& x) {
    if (x.what == transfer::use::in && x.what_box.lent != 0 && x.what_box.from == who && (has_ended || !x.placed))
      never_comes(x, why);
  });
  loans_.forget_early([&](const borrower& b) { return name_of(b.line->peer().id) == who; });
  due d = take_due();
  hold.unlock();
  carry_out(std::move(d));
}

void node_service_actor::pull(const wire::pull_request& r, const std::shared_ptr<net::session>& line) {
  std::unique_lock hold(lock_);
  const borrower who{line, r.number, r.lent, r.where};
  const loans::pulled p = loans_.pull(who, left_);
  if (p.from) {
    if (p.from->open) answer(*p.from);
  } else if (!p.waits) {
    turn_away(who, "it is not there any more");
  }
  due d = take_due();
  hold.unlock();
  carry_out(std::move(d));
}

void node_service_actor::cannot_pull(const wire::pull_refusal& r, const node_id& by) {
  std::unique_lock hold(lock_);
  if (transfer* const x = pulling(r.number, r.lent, by); x && !x->placed)
    never_comes(*x, std::make_exception_ptr(error(errc::data_lost, r.text)));
  due d = take_due();
  hold.unlock();
  carry_out(std::move(d));
}

net::pieces node_service_actor::pulled_arriving(const wire::pulled_head& h, std::uint64_t bytes, const node_id& from) {
  std::lock_guard hold(lock_);
  transfer* const x = pulling(h.number, h.lent, from);
  return x ? give_room(*x, bytes) : net::pieces();
}

void node_service_actor::pulled_arrived(const wire::pulled_head& h, const node_id& from, bool whole) {
  std::unique_lock hold(lock_);
  transfer* const x = pulling(h.number, h.lent, from);
  if (!x || !std::exchange(x->writing, false) || !whole) return;
  transfers_.await_no_more(*x);
  close(*x);
  due d = take_due();
  hold.unlock();
  carry_out(std::move(d));
}

// ---- from placement ------------------------------------------------------------------------------------------------

// Tells the owner of a body, on the thread that runs it: if the process does not survive that, the owner is to know by
// which task, and what has been.
void node_service_actor::tell_of_body(task_record& t, wire::kind what) {
  std::lock_guard hold(lock_);
  const remote_task* const r = tasks_.of(t);
  if (left_ || !r) return;
  net::writer frame;
  frame.fixed(what);
  frame.varint(r->id);
  session_->send(frame.view());
}

void node_service_actor::after_turn() {
  try {
    take_notes();
  } catch (...) {
    tell_supervisor(std::current_exception());
  }
}

void node_service_actor::take_notes() {
  std::unique_lock hold(lock_);
  for (const auto& [t, was_granted] : notes_.take()) {
    if (transfer* const x = transfers_.of(t))
      was_granted ? opened(*x) : closed(*x);
    else if (remote_task* const r = tasks_.of(*t))
      ended(*r, placement_.closed());
  }
  due d = take_due();
  hold.unlock();
  carry_out(std::move(d));
}

// ---- the end -------------------------------------------------------------------------------------------------------

void node_service_actor::close_intake() {
  std::unique_lock hold(lock_);
  if (left_ || std::exchange(closed_, true)) return;
  net::writer frame;
  frame.fixed(wire::kind::leaving);
  session_->send(frame.view());
}

bool node_service_actor::is_released() const {
  std::lock_guard hold(lock_);
  return left_ || released_;
}

void node_service_actor::leave() {
  unsent_.drop_all();
  std::unique_lock hold(lock_);
  if (std::exchange(left_, true)) return;
  tasks_.each([&](remote_task& r) {
    if (!r.task) return;
    if (claim(*r.task)) {
      r.task->error = cancelled_error(*r.task, "");
      fulfil(*r.task, board_);
    }
    r.stop.request_stop();
  });
  // Transfers from the owner never come; the tasks that would have read them have just been cancelled. But bytes that a
  // third node sends go on being written to their place.
  const auto is_written = [](const transfer& x) { return x.what_box.lent != 0 && x.placed; };
  transfers_.each([&](transfer& x) {
    if (x.open && x.what == transfer::use::in && !is_written(x)) close(x);
  });
  transfers_.await_only(is_written);
  pushes_.forget_unwanted();
  drop_lends();
  while (!arrays_.empty()) drop(arrays_.begin());
  due d = take_due();
  hold.unlock();
  carry_out(std::move(d));
}

void node_service_actor::close_sums() {
  std::unique_lock hold(lock_);
  send_sums();
  due d = take_due();
  hold.unlock();
  carry_out(std::move(d));
}

bool node_service_actor::is_empty() const {
  std::lock_guard hold(lock_);
  return tasks_.empty() && transfers_.empty();
}

std::shared_ptr<node_service> make_node_service(engine& the_engine, placement& p, wait_table& b, runtime_state& rt,
                                                std::shared_ptr<net::session> s, find_line lines, find_part parts,
                                                std::function<void()> close_sums_later, failure_sink give_up) {
  return std::make_shared<node_service_actor>(the_engine, p, b, rt, std::move(s), std::move(lines), std::move(parts),
                                              std::move(close_sums_later), std::move(give_up));
}

}  // namespace troupe::detail
