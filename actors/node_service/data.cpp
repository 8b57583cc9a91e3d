// What this file is for: bytes of another node's arrays: those that come for its tasks, those that go home.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/node_service/actor.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

const kernel_info access_kernel{.name = "access from another node", .key = 2};

namespace {

// Bytes up to which a tile is copied before it is sent, so that tasks wait for the copy only.
constexpr std::size_t copied_bytes_max = 64u << 20;

[[noreturn]] void refuse(const char* what) { throw error(errc::bad_frame, what); }

}  // namespace

void guest_actor::check(const array_core& a, const wire::gap& g) {
  if (g.tile >= a.tile_count || g.where.empty() || !a.tile_box(g.tile).contains(g.where))
    refuse("a box that is not in its tile");
}

// ---- host accesses --------------------------------------------------------------------------------------------------

void guest_actor::open_door(array_core& a, access_mode mode, const logic::box4& where, std::unique_ptr<door> d) {
  task_record* const t = new_task(house_);
  t->kind = task_kind::host_access;
  t->kernel = &access_kernel;
  t->body_gone = true;
  try {
    describe(house_, t->accesses[0], a, mode, where.lo, where.hi, {}, a.spec.size, border::refuse, nullptr, 0, nullptr);
    t->access_count = 1;
    extra_of(*t).listener = this;
    d->task = t;
    d->element = a.spec.element;
    d->context = std::make_unique<run_context>(*link_.host, link_, d->buffers, "host", never_stopping_);
    d->context->bind(*t);
    doors_.emplace(t, std::move(d));
  } catch (...) {
    discard(t);
    release(t);
    throw;
  }
  to_submit_.push_back(t);
}

// Uses a door whose access was granted: asks for what is to come in, or sends what is to go.
void guest_actor::opened(door& d) {
  d.open = true;
  try {
    d.view = d.context->view_of(0);
  } catch (...) {
    if (d.what == door::use::in)  // no memory for what was to come: what waits for it must not run
      d.task->error = task_error(*d.task, "host", 1, std::current_exception());
    else if (d.what == door::use::lend)
      d.never = std::current_exception();
    else
      tell_cannot(d, std::current_exception());
    close(d);
    return;
  }
  if (d.what == door::use::lend) {
    if (d.never)
      close(d);
    else if (d.whom)
      answer(d);
    return;
  }
  if (d.what == door::use::in) {
    if (left_) return close(d);
    if (d.never) return fail(d);
    if (await_push(d)) return;
    coming_.emplace(d.number, &d);
    if (d.what_box.lent != 0) return ask_other(d);
    if (wants_.empty()) wants_.fixed(wire::kind::want);
    wire::put(wants_, wire::box_request{d.number, d.array, d.what_box});
    if (wants_.size() >= gathered_bytes) send(wants_);
    return;
  }
  net::writer head;
  if (d.what == door::use::home) {
    head.fixed(wire::kind::bytes_home);
    head.varint(d.number);
  } else {
    head.fixed(wire::kind::bytes_back);
    head.varint(d.number);
    head.varint(static_cast<std::uint64_t>(d.access));
  }
  const net::pieces body = rows_of(d.view, d.element);
  auto title = head.take();
  if (d.copies && send_copy(d, title, body)) return;
  to_send_.push_back({std::move(title), {body.begin(), body.end()}, d.task, session_});
}

// Sends a copy and closes the door; false if memory is bounded or short: then it is sent from its place.
bool guest_actor::send_copy(door& d, std::vector<std::byte>& head, const net::pieces& rows) {
  std::size_t bytes = 0;
  for (const auto& r : rows) bytes += r.size();
  if (link_.bounded || bytes > copied_bytes_max) return false;
  auto all = std::make_shared<std::vector<std::byte>>();
  try {
    all->reserve(bytes);
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (const auto& r : rows) all->insert(all->end(), r.begin(), r.end());
  const std::span<const std::byte> body(*all);
  to_send_.push_back({std::move(head), {body}, nullptr, session_, std::move(all)});
  close(d);
  return true;
}

// Ends the door's host access: its box may change again. The record is released once it has retired.
void guest_actor::close(door& d) {
  if (!std::exchange(d.open, false)) return;
  try {
    d.context->commit();
  } catch (...) {
    d.context->roll_back();
  }
  to_close_.push_back(d.task);
}

// Removes a door whose access has retired: closed, or never opened because its box is in error.
void guest_actor::closed(door& d) {
  if (d.what == door::use::lend)
    lend_ended(d);
  else if (d.task->error && d.what != door::use::in)
    tell_cannot(d, d.task->error);
  if (guest* const g = d.of; g && --g->on_their_way == 0 && !g->task) {
    if (g->untold) tell_end(*g->untold);
    for (array_core* a : g->arrays) to_drop_.push_back(a);
    forget(*g);
  }
  forget_push(d);
  to_release_.push_back(d.task);
  doors_.erase(d.task);
}

// ---- in -------------------------------------------------------------------------------------------------------------

void guest_actor::ask_for(array_core& a, std::uint64_t array, const wire::gap& g) {
  check(a, g);
  auto d = std::make_unique<door>();
  d->what = door::use::in;
  d->number = ++last_number_;
  d->array = array;
  d->what_box = g;
  door& one = *d;
  open_door(a, access_mode::write, g.where, std::move(d));
  if (g.pushed != 0) expect_push(one, a);
  asked_.push_back(to_submit_.back());
}

net::pieces guest_actor::arriving(std::span<const std::byte> head, std::uint64_t bytes) {
  net::reader from(head);
  const auto what = from.fixed<wire::kind>();
  std::lock_guard hold(lock_);
  if (what == wire::kind::bytes_pushed) return push_arriving(from.varint(), bytes);
  const auto d = coming_.find(from.varint());
  if (left_ || d == coming_.end() || d->second->what_box.lent != 0) return {};
  return give_room(*d->second, bytes);
}

// Returns the memory for a transfer. One at a time: when it has ended, other tasks use the memory.
net::pieces guest_actor::give_room(door& d, std::uint64_t bytes) {
  if (d.writing) refuse("a transfer into a place where another one is being written");
  net::pieces to = rows_of(d.view, d.element);
  std::uint64_t room = 0;
  for (const auto& piece : to) room += piece.size();
  if (room != bytes) refuse("a transfer of another size than what was asked for");
  d.placed = d.writing = true;
  return to;
}

void guest_actor::arrived(std::span<const std::byte> head, bool whole) {
  net::reader from(head);
  const auto what = from.fixed<wire::kind>();
  std::unique_lock hold(lock_);
  if (what == wire::kind::bytes_pushed) {
    push_arrived(from.varint(), whole);
    return work_off(hold);
  }
  const auto d = coming_.find(from.varint());
  if (d == coming_.end() || d->second->what_box.lent != 0) return;
  door& one = *d->second;
  if (!std::exchange(one.writing, false) || !whole) return;
  coming_.erase(d);
  close(one);
  work_off(hold);
}

// ---- out ------------------------------------------------------------------------------------------------------------

void guest_actor::give(const wire::box_request& r, bool copies) {
  const auto a = arrays_.find(r.array);
  if (a == arrays_.end()) refuse("a tile of an array that was not named before");
  check(*a->second, r.what);
  auto d = std::make_unique<door>();
  d->what = door::use::home;
  d->copies = copies;
  d->number = r.number;
  open_door(*a->second, access_mode::read, r.what.where, std::move(d));
}

void guest_actor::send_back(guest& g) {
  for (std::size_t i = 0; i < g.returns.size(); ++i) {
    const auto& [access, x] = g.returns[i];
    array_core& a = *g.arrays[i];
    auto d = std::make_unique<door>();
    d->what = door::use::back;
    d->number = g.id;
    d->access = access;
    d->of = &g;
    ++g.on_their_way;
    open_door(a, access_mode::read, intersect(x.where, x.limit), std::move(d));
  }
}

// Closes a door whose bytes have been sent. On the transport's bulk thread, or on the thread that sends.
void guest_actor::sent(task_record* t) {
  std::unique_lock hold(lock_);
  if (const auto d = doors_.find(t); d != doors_.end()) {
    d->second->sending = false;
    close(*d->second);
  }
  work_off(hold);
}

void guest_actor::tell_cannot(const door& d, const std::exception_ptr& why) {
  if (left_) return;
  // Memory or disk that is short may be had elsewhere; a tile that was only here is lost.
  const errc code = d.what == door::use::back ? errc::out_of_memory : errc::data_lost;
  net::writer frame;
  frame.fixed(wire::kind::cannot);
  frame.varint(d.number);
  frame.varint(static_cast<std::uint64_t>(code));
  frame.text(text_of(why).substr(0, wire::text_max));
  session_->send(frame.view());
}

}  // namespace troupe::detail
