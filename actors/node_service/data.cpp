// What this file is for: bytes of another node's arrays: those that come for its tasks, those that go home.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/node_service/actor.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {

// Bytes up to which a tile is copied before it is sent, so that tasks wait for the copy only.
constexpr std::size_t copied_bytes_max = 64u << 20;

bool is_among(std::span<const wire::written_box> all, int access) {
  return std::ranges::any_of(all,
                             [&](const wire::written_box& w) { return w.access == static_cast<unsigned>(access); });
}

}  // namespace

// Uses a transfer whose access was granted.
void node_service_actor::opened(transfer& x) {
  x.open = true;
  try {
    x.view = x.context->view_of(0);
  } catch (...) {
    if (x.what == transfer::use::in)  // no memory for what was to come: what waits for it must not run
      x.task->error = task_error(*x.task, "host", 1, std::current_exception());
    else if (x.what == transfer::use::lend)
      x.never = std::current_exception();
    else
      note_not_sent(x, std::current_exception());
    return close(x);
  }
  switch (x.what) {
    case transfer::use::lend:
      if (x.never)
        close(x);
      else if (x.whom)
        answer(x);
      break;
    case transfer::use::in:
      get_bytes(x);
      break;
    case transfer::use::back:
      if (x.of->group != 0) {
        add_up(x);
        break;
      }
      [[fallthrough]];
    case transfer::use::home:
      send_bytes(x);
      break;
  }
}

// Sees to it that the bytes of an open transfer come: they are here, are being pushed, or are asked for.
void node_service_actor::get_bytes(transfer& x) {
  if (left_) return close(x);
  if (x.never) return fail(x);
  if (!x.what_box.bytes.empty()) {
    copy_into(rows_of(x.view, x.element), x.what_box.bytes.data());
    x.what_box.bytes = {};
    return close(x);
  }
  switch (x.what_box.pushed != 0 ? pushes_.look(x.what_box.pushed) : push_store::state::ask) {
    case push_store::state::here:
      return put_in_place(x);
    case push_store::state::coming:
      return;
    case push_store::state::ask:
      x.what_box.pushed = 0;
  }
  transfers_.await(x);
  if (x.what_box.lent != 0) return ask_other(x);
  out_.ask_for({x.number, x.array, x.what_box});
}

// Sends the bytes of an open transfer to the owner.
void node_service_actor::send_bytes(transfer& x) {
  net::writer head;
  head.fixed(x.what == transfer::use::home ? wire::kind::bytes_home : wire::kind::bytes_back);
  head.varint(x.number);
  if (x.what == transfer::use::back) {
    head.varint(static_cast<std::uint64_t>(x.access));
    head.varint(0);  // it brings no other
  }
  const net::pieces body = rows_of(x.view, x.element);
  auto title = head.take();
  if (x.is_snapshot && send_copy(x, title, body)) return;
  out_.add({std::move(title), {body.begin(), body.end()}, x.task, session_});
}

// Sends a copy and closes the transfer; false if memory is bounded or short: then it is sent from its place.
bool node_service_actor::send_copy(transfer& x, std::vector<std::byte>& head, const net::pieces& rows) {
  std::size_t bytes = 0;
  for (const auto& r : rows) bytes += r.size();
  if (rt_.bounded || bytes > copied_bytes_max) return false;
  auto all = std::make_shared<std::vector<std::byte>>();
  try {
    all->reserve(bytes);
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (const auto& r : rows) all->insert(all->end(), r.begin(), r.end());
  const std::span<const std::byte> body(*all);
  out_.add({std::move(head), {body}, nullptr, session_, std::move(all)});
  close(x);
  return true;
}

// Adds the partial of a task that has ended to those of others.
void node_service_actor::add_up(transfer& x) {
  remote_task& r = *x.of;
  try {
    groups_.add(r.group, r.id, x.access, rows_of(x.view, x.element), x.element);
  } catch (const std::exception&) {
    note_not_sent(x, std::current_exception());
    return close(x);
  }
  close(x);
  send_sum(groups_.take(std::exchange(r.group, 0)));
  if (groups_.empty() || std::exchange(sums_are_due_, true)) return;
  try {
    close_sums_later_();
  } catch (const std::exception&) {  // for want of memory: then nobody waits
    send_sums();
  }
}

// Sends all sums, complete or not.
void node_service_actor::send_sums() {
  sums_are_due_ = false;
  while (auto s = groups_.take_any()) send_sum(std::move(s));
}

// Nothing of the task is added to others' partials, or not any more.
void node_service_actor::leave_sum(remote_task& r) {
  if (r.group == 0) return;
  const std::uint64_t group = std::exchange(r.group, 0);
  groups_.left(group);
  send_sum(groups_.take(group));
}

// Sends a sum of partials, if there is one. What there is no memory for is told to be lost.
void node_service_actor::send_sum(std::optional<partial_groups::sum> s) {
  if (!s || left_) return;
  try {
    net::writer head;
    head.fixed(wire::kind::bytes_back);
    head.varint(s->tasks.front());
    head.varint(static_cast<std::uint64_t>(s->access));
    head.varint(s->tasks.size() - 1);
    for (const std::uint64_t task : std::span(s->tasks).subspan(1)) head.varint(task);
    const std::span<const std::byte> body(*s->bytes);
    out_.add({head.take(), {body}, nullptr, session_, s->bytes});
  } catch (const std::bad_alloc&) {
    const auto why = std::make_exception_ptr(error(errc::out_of_memory, "no memory to send a sum of partials"));
    for (const std::uint64_t task : s->tasks) tell_not_sent(task, errc::out_of_memory, why);
  }
}

// Tells the owner of bytes that do not come.
void node_service_actor::note_not_sent(const transfer& x, const std::exception_ptr& why) {
  // Memory or disk that is short may be had elsewhere; a tile that was only here is lost.
  tell_not_sent(x.number, x.what == transfer::use::back ? errc::out_of_memory : errc::data_lost, why);
  if (x.what == transfer::use::back) leave_sum(*x.of);
}

// Removes a transfer whose access has retired: closed, or never opened because its box is in error.
void node_service_actor::closed(transfer& x) {
  if (x.what == transfer::use::lend)
    lend_ended(x);
  else if (x.task->error && x.what != transfer::use::in)
    note_not_sent(x, x.task->error);
  if (remote_task* const r = x.of; r && --r->on_their_way == 0 && !r->task) {
    if (r->untold) tell_end(*r->untold);
    remove(*r);
  }
  pushes_.forget(x);
  later_.release(*x.task);
  transfers_.remove(x);
}

// ---- in -------------------------------------------------------------------------------------------------------------

void node_service_actor::ask_for(array_core& a, std::uint64_t array, const wire::gap& g) {
  check(a, g);
  auto made = std::make_unique<transfer>();
  made->what = transfer::use::in;
  made->number = transfers_.next_number();
  made->array = array;
  made->what_box = g;
  transfer& x = begin(a, access_mode::write, g.where, std::move(made));
  if (g.pushed != 0) pushes_.expect(g.pushed, static_cast<std::uint64_t>(g.where.volume()) * a.spec.element, x);
  asked_.push_back(x.task);
}

// Moves or copies kept bytes into the tile of an open transfer, which no task uses, and closes the transfer.
void node_service_actor::put_in_place(transfer& x) {
  array_core& a = *x.task->accesses[0].array;
  loose_bytes kept = pushes_.take(x);
  if (x.what_box.where == a.tile_box(x.what_box.tile)) {
    exchange_host_tile(rt_, a, x.what_box.tile, std::move(kept));
  } else {
    copy_into(rows_of(x.view, x.element), kept.get());
  }
  close(x);
}

// ---- out ------------------------------------------------------------------------------------------------------------

void node_service_actor::send_home(const wire::box_request& r, bool is_snapshot) {
  const auto a = arrays_.find(r.array);
  if (a == arrays_.end()) refuse_peer("a tile of an array that was not named before");
  check(*a->second, r.what);
  auto x = std::make_unique<transfer>();
  x->what = transfer::use::home;
  x->is_snapshot = is_snapshot;
  x->number = r.number;
  begin(*a->second, access_mode::read, r.what.where, std::move(x));
}

void node_service_actor::send_back(remote_task& r, std::span<const wire::written_box> sent) {
  for (std::size_t i = 0; i < r.returns.size(); ++i) {
    const auto& [access, descriptor] = r.returns[i];
    if (is_among(sent, access)) continue;
    auto x = std::make_unique<transfer>();
    x->what = transfer::use::back;
    x->number = r.id;
    x->access = access;
    x->of = &r;
    ++r.on_their_way;
    begin(*r.arrays[i], access_mode::read, intersect(descriptor.where, descriptor.limit), std::move(x));
  }
}

}  // namespace troupe::detail
