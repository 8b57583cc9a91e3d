// What this file is for: what goes to another node and comes from it as bytes, and what is told after each step.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   after_turn, a moment,   with the lock        without the lock
//   bytes read or written --> send_and_take ----> tell: pushes, lends, placement
#include <algorithm>
#include <thread>

#include <troupe/error.hpp>

#include "actors/logic/data/home_box.hpp"
#include "actors/placement/placement.hpp"
#include "actors/remote_node/actor.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {

[[noreturn]] void refuse_transfer() {
  throw error(errc::protocol_error, "a transfer that was not asked for, of another size, or of what is coming already");
}

}  // namespace

void node_actor::after_turn() {
  try {
    send_what_is_due();
  } catch (...) {
    tell_supervisor(std::current_exception());
  }
}

void node_actor::send_what_is_due() {
  std::unique_lock hold(lock_);
  const send_queue::need need = urgency();
  if (need == send_queue::need::may_wait) send_soon();
  outgoing out = need == send_queue::need::send_now ? send_and_take() : take_outgoing();
  hold.unlock();
  tell(std::move(out));
  if (departure_.is_saving()) go_on_saving();
}

// Sends what is queued, and takes out what is to be told then.
node_actor::outgoing node_actor::send_and_take() {
  if (send_some()) send_soon();
  return take_outgoing();
}

void node_actor::send_soon() {
  gathering_.ask([this] {
    try {
      send_gathered();
    } catch (...) {
      tell_supervisor(std::current_exception());
    }
  });
}

void node_actor::send_gathered() {
  std::unique_lock hold(lock_);
  gathering_.begin();
  outgoing out = send_and_take();
  hold.unlock();
  tell(std::move(out));
}

void node_actor::tell(outgoing&& out) {
  {
    struct telling {
      std::atomic<int>& untold;
      ~telling() { untold.fetch_sub(1); }
    } const one{untold_};
    start_pushes(std::move(out.to_push));
    settle_lends(out.lent);
    placement_.report(*this, std::move(out.report));
    tell_saved();
  }
  idle_.notify_all();
  if (departure_.is_under_way()) save_all();
}

// ---- bytes that were asked for --------------------------------------------------------------------------------------

// A transfer that a job's node asked for has been read. What the node has told of the task's end meanwhile holds now.
void node_actor::sent(std::uint64_t id) {
  std::unique_lock hold(lock_);
  job* const j = jobs_.find(id);
  if (!occupant_.has_session() || !j || j->sending == 0) return;
  if (--j->sending != 0 || !j->end) return;
  finish_awaited(*j);
  outgoing out = send_and_take();
  hold.unlock();
  tell(std::move(out));
}

// Sends the boxes that tasks there lack. The tasks have not ended, so no other task writes the boxes, and they do not
// end before the boxes have been sent.
void node_actor::serve_fetches(net::reader& from) {
  for (const wire::box_request& r : wire::take_requests(from)) {
    array_core* const a = known_.find(r.array);
    const bool fits =
        a && r.what.tile < a->tile_count && a->tile_box(r.what.tile).contains(r.what.where) && !r.what.where.empty();
    if (!fits) throw error(errc::protocol_error, "bytes of an array were asked for that are not there");
    const auto runs = [&](std::uint64_t id) { return jobs_.find(id) != nullptr; };
    const std::uint64_t asker_id = known_.asker(r.array, r.what.tile, runs);
    job* const asker = asker_id != 0 ? jobs_.find(asker_id) : nullptr;
    if (!asker) throw error(errc::protocol_error, "bytes were asked for that no task there is to read");
    ++asker->sending;
    const net::pieces body = rows_of(rt_, *a, r.what.tile, r.what.where, false);
    const std::uint64_t bytes = static_cast<std::uint64_t>(r.what.where.volume()) * a->spec.element;
    counts_.add_bytes_out(bytes);
    net::writer head;
    head.fixed(wire::kind::bytes_in);
    head.varint(r.number);
    const double begin = meter_.begin_out();
    // If the session has ended it is told at once, with the lock held; then all of its tasks come back anyway.
    struct call {
      const std::thread::id by = std::this_thread::get_id();
      bool is_under_way = true;  // looked at by that thread only
    };
    const auto here = std::make_shared<call>();
    occupant_.session()->send_bulk(head.view(), net::const_pieces(body.begin(), body.end()),
                                   [this, bytes, begin, here, id = asker->id](bool all) {
                                     const float taken_ns = meter_.end_out(begin);
                                     if (all) placement_.report_transfer(host_space, facts_.space, bytes, taken_ns);
                                     if (here->by != std::this_thread::get_id() || !here->is_under_way) sent(id);
                                   });
    here->is_under_way = false;
  }
}

// Notes whose partials are in the sum that comes in a job's name. Throws for jobs that have none there, or not any more.
void node_actor::carry(job& by, net::reader& from) {
  for (std::uint64_t left = from.at_most(by.group != 0 ? wire::sum_max : 0, "a number of partials"); left != 0;
       --left) {
    job* const k = jobs_.find(from.varint());
    const bool waits = k && k != &by && k->group == by.group && k->carried_by == 0 && k->carries.empty() &&
                       k->writing == 0 && k->data && k->data->awaited != 0 && (!k->end || k->end->in_sum);
    if (!waits) refuse_transfer();
    k->carried_by = by.id;
    by.carries.push_back(k->id);
  }
}

// The bytes of the sum have not come after all.
void node_actor::carry_nothing(job& by) {
  for (const std::uint64_t id : by.carries)
    if (job* const k = jobs_.find(id)) k->carried_by = 0;
  by.carries.clear();
}

net::pieces node_actor::arriving(std::span<const std::byte> head, std::uint64_t bytes) {
  net::reader from(head);
  const auto what = from.fixed<wire::kind>();
  std::lock_guard hold(lock_);
  const std::uint64_t number = from.varint();
  if (copies_home::copy* const c = copies_.find(number);
      c && what == wire::kind::bytes_home && occupant_.has_session()) {
    saved_tile& s = c->what;
    const std::size_t room = s.array->bytes_of(s.tile);
    if (room != bytes || c->writing) refuse_transfer();
    if (!s.bytes) s.bytes = new_loose_bytes(rt_, room);
    c->writing = true;
    counts_.add_bytes_in(bytes);
    return {{s.bytes.get(), room}};
  }
  job* const j = jobs_.find(number);
  if (!j || !occupant_.has_session()) return {};
  net::pieces to;
  job::back* part = nullptr;
  if (what == wire::kind::bytes_home && j->task->kind == task_kind::transfer && j->writing == 0) {
    const access& x = j->task->accesses[0];
    to = rows_of(rt_, *x.array, x.tile, x.array->tile_box(x.tile), true);
  } else if (what == wire::kind::bytes_home && j->task->kind == task_kind::fetch && j->writing == 0) {
    home_box& box = *j->task->extra->home_boxes.front();
    to = {{box.bytes.get(), static_cast<std::size_t>(box.where.volume()) * box.array->spec.element}};
  } else {
    part = what == wire::kind::bytes_back ? j->back_of(from.varint()) : nullptr;
    if (!part || part->writing || part->has_come || j->carried_by != 0) refuse_transfer();
    if (j->end && j->end->how != wire::outcome::ran) return {};  // another part of it could not be sent
    to = part->pieces();
  }
  std::uint64_t room = 0;
  for (const auto& piece : to) room += piece.size();
  if (room != bytes) refuse_transfer();
  if (part) carry(*j, from);
  if (part) part->writing = true;
  ++j->writing;
  counts_.add_bytes_in(bytes);
  return to;
}

void node_actor::arrived(std::span<const std::byte> head, bool whole) {
  net::reader from(head);
  const auto what = from.fixed<wire::kind>();
  std::unique_lock hold(lock_);
  const std::uint64_t number = from.varint();
  job* const j = jobs_.find(number);
  if (!occupant_.has_session()) return;
  if (copies_home::copy* const c = copies_.find(number)) {
    // A transfer of another kind with that number has written nothing; one of this kind may still be coming.
    if (what != wire::kind::bytes_home || !std::exchange(c->writing, false) || !whole) return;
    if (job* const waits = copy_arrived(number, true)) finish_awaited(*waits);
  } else if (!j || j->writing == 0) {
    return;
  } else if (what == wire::kind::bytes_home) {
    --j->writing;
    if (!whole) return;
    come_home(*j, nullptr);
  } else {
    job::back* const b = j->back_of(from.varint());
    if (!b || !std::exchange(b->writing, false)) return;
    --j->writing;
    if (whole) {
      b->has_come = true;
      --j->data->awaited;
    } else {
      carry_nothing(*j);
    }
    finish_awaited(*j);
  }
  outgoing out = send_and_take();
  hold.unlock();
  tell(std::move(out));
}

// ---- bytes that go with their task ----------------------------------------------------------------------------------

// Begins the pushes of tasks that have been sent.
void node_actor::start_pushes(std::vector<pushes::push> all) {
  for (pushes::push& p : all) {
    counts_.add_bytes_out(p.bytes);
    const double begin = meter_.begin_out();
    p.to->send_bulk(p.head, std::move(p.body), [this, with = p.job, bytes = p.bytes, begin](bool sent) {
      const float taken_ns = meter_.end_out(begin);
      if (sent) placement_.report_transfer(host_space, facts_.space, bytes, taken_ns);
      pushed(with, bytes);
    });
  }
}

// The memory of a push is not read any more.
void node_actor::pushed(std::uint64_t with, std::uint64_t bytes) {
  std::unique_lock hold(lock_);
  pushes_.ended(bytes);
  if (job* const j = jobs_.find(with)) {
    --j->pushing;
    finish_awaited(*j);
  }
  outgoing out = send_and_take();
  hold.unlock();
  tell(std::move(out));
}

}  // namespace troupe::detail
