// What this file is for: bytes that travel between this node and another one: tiles and copies home, boxes there.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <thread>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/placement/placement.hpp"
#include "actors/remote_node/actor.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {

[[noreturn]] void refuse_transfer() {
  throw error(errc::bad_frame, "a transfer that was not asked for, of another size, or of what is coming already");
}

void put(net::writer& to, std::uint64_t number, const array_core& a, std::uint32_t tile) {
  wire::put(to, wire::box_request{number, a.id, {tile, a.tile_box(tile)}});
}

}  // namespace

// ---- what placement asks for ----------------------------------------------------------------------------------------

// Begins an internal task; false if it has to wait for bytes on their way home, or for a job.
bool node_actor::start_internal(task_record& t) {
  const access& x = t.accesses[0];
  array_core& a = *x.array;
  if (t.kind == task_kind::forget) {
    if (known_.is_coming_home(a.id)) return false;  // until then the array's memory must stay
    if (known_.find(a.id)) {
      net::writer frame;
      frame.fixed(wire::kind::forget);
      frame.varint(a.id);
      session_->send(frame.view());
      known_.forget(a.id);
    }
    claim(t);
    end_internal(t, nullptr);
    return true;
  }
  claim(t);
  if (t.kind != task_kind::transfer) {
    end_internal(t, std::make_exception_ptr(error(errc::not_supported, "nodes do not lend")));
    return true;
  }
  if (x.mode == access_mode::update) {  // a copy that is not dirty would do
    if (!known_.has_current(a, x.tile)) {
      end_internal(t, *static_cast<const std::exception_ptr*>(t.extra->payload.get()));
      return true;
    }
  } else if (!known_.is_dirty(a.id, x.tile)) {  // lost, which placement has been told
    end_internal(t, nullptr);
    return true;
  }
  if (x.mode == access_mode::write) {  // given up: all of it is about to be overwritten elsewhere
    known_.forget(a.id, x.tile);
    end_internal(t, nullptr);
    return true;
  }
  if (!jobs_.has_free()) return false;
  job& j = take_job(t);
  j.begin = meter_.begin_home();
  known_.begins_home(a.id);
  net::writer frame;
  frame.fixed(wire::kind::give);
  put(frame, j.id, a, x.tile);
  session_->send(frame.view());
  return true;
}

// A tile has come home, or (with an error) the node had nothing to send.
void node_actor::come_home(job& j, std::exception_ptr why) {
  task_record& t = *j.task;
  if (!is_internal(t.kind) || j.writing != 0) throw error(errc::bad_frame, "the answer to what was not asked");
  const access& x = t.accesses[0];
  const std::uint64_t array = x.array->id;
  const float taken_ns = meter_.end_home(j.begin);
  if (!why) {
    known_.came_home(array, x.tile);
    t.measured_ns = std::max(1.0f, taken_ns);
  } else {
    known_.forget(array, x.tile);
    why = lost_with(t, why);
  }
  give_job(j);
  end_internal(t, std::move(why));
  one_less_coming(array);
}

void node_actor::one_less_coming(std::uint64_t array) {
  known_.ends_home(array);
  queue_.resume();
}

// Asks for a copy of a tile, for a job or to be saved; false if there is nothing that only the node has.
bool node_actor::ask_for_copy(array_core& a, std::uint32_t tile, std::uint64_t for_job) {
  const auto there = known_.only_version(a, tile);
  if (!there) return false;
  const std::uint64_t number = jobs_.number_without_job();
  copies_.ask(number, a, tile, there->version, there->last_write, for_job);
  known_.begins_home(a.id);
  flush();  // it comes after what has been sent before
  net::writer frame;
  frame.fixed(wire::kind::copy);
  put(frame, number, a, tile);
  session_->send(frame.view());
  return true;
}

// Asks for copies of what the task writes; the task ends when they are here.
void node_actor::ask_for_written(job& j) {
  known_.each_written(*j.task, [&](const access& x) { j.copies += ask_for_copy(*x.array, x.tile, j.id); });
}

void node_actor::copy_arrived(std::uint64_t number, bool whole) {
  copies_home::arrival a = copies_.arrived(number, whole);
  if (job* const j = a.for_job != 0 ? jobs_.find(a.for_job) : nullptr) {
    if (a.tile.array) j->brought.push_back(std::move(a.tile));
    --j->copies;
    finish_awaited(*j);
  }
  one_less_coming(a.array->id);
}

// ---- bytes ----------------------------------------------------------------------------------------------------------

// A transfer that a job's node asked for has been read. What the node has told of the task's end meanwhile holds now.
void node_actor::sent(std::uint64_t id) {
  std::unique_lock hold(lock_);
  job* const j = jobs_.find(id);
  if (!session_ || !j || j->sending == 0) return;
  if (--j->sending != 0 || !j->end) return;
  finish_awaited(*j);
  send_some();
  outgoing out = take_outgoing();
  hold.unlock();
  tell(std::move(out));
}

// Sends the boxes that tasks there want. The tasks have not ended, so no other task writes the boxes, and they do not end
// before the boxes have been sent.
void node_actor::serve_wants(net::reader& from) {
  for (const wire::box_request& r : wire::take_requests(from)) {
    array_core* const a = known_.find(r.array);
    const bool fits =
        a && r.what.tile < a->tile_count && a->tile_box(r.what.tile).contains(r.what.where) && !r.what.where.empty();
    if (!fits) throw error(errc::bad_frame, "bytes of an array were asked for that are not there");
    const auto runs = [&](std::uint64_t id) { return jobs_.find(id) != nullptr; };
    const std::uint64_t asker_id = known_.asker(r.array, r.what.tile, runs);
    job* const asker = asker_id != 0 ? jobs_.find(asker_id) : nullptr;
    if (!asker) throw error(errc::bad_frame, "bytes were asked for that no task there is to read");
    ++asker->sending;
    const net::pieces body = rows_of(link_, *a, r.what.tile, r.what.where, false);
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
    session_->send_bulk(head.view(), net::const_pieces(body.begin(), body.end()),
                        [this, bytes, begin, here, id = asker->id](bool all) {
                          const float taken_ns = meter_.end_out(begin);
                          if (all) placement_.report_transfer(host_space, facts_.space, bytes, taken_ns);
                          if (here->by != std::this_thread::get_id() || !here->is_under_way) sent(id);
                        });
    here->is_under_way = false;
  }
}

net::pieces node_actor::arriving(std::span<const std::byte> head, std::uint64_t bytes) {
  net::reader from(head);
  const auto what = from.fixed<wire::kind>();
  std::lock_guard hold(lock_);
  const std::uint64_t number = from.varint();
  if (copies_home::copy* const c = copies_.find(number); c && what == wire::kind::bytes_home && session_) {
    saved_tile& s = c->what;
    const std::size_t room = s.array->bytes_of(s.tile);
    if (room != bytes || c->writing) refuse_transfer();
    if (!s.bytes) s.bytes = new_loose_bytes(link_, room);
    c->writing = true;
    counts_.add_bytes_in(bytes);
    return {{s.bytes.get(), room}};
  }
  job* const j = jobs_.find(number);
  if (!j || !session_) return {};
  net::pieces to;
  job::back* part = nullptr;
  if (what == wire::kind::bytes_home && j->task->kind == task_kind::transfer && j->writing == 0) {
    const access& x = j->task->accesses[0];
    to = rows_of(link_, *x.array, x.tile, x.array->tile_box(x.tile), true);
  } else {
    part = what == wire::kind::bytes_back ? j->back_of(from.varint()) : nullptr;
    if (!part || part->writing) refuse_transfer();
    if (j->end && j->end->how != wire::outcome::ran) return {};  // another part of it could not be sent
    to = part->pieces();
  }
  std::uint64_t room = 0;
  for (const auto& piece : to) room += piece.size();
  if (room != bytes) refuse_transfer();
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
  if (!session_) return;
  if (copies_home::copy* const c = copies_.find(number)) {
    // A transfer of another kind with that number has written nothing; one of this kind may still be coming.
    if (what != wire::kind::bytes_home || !std::exchange(c->writing, false) || !whole) return;
    copy_arrived(number, true);
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
    if (whole && j->data->awaited != 0) --j->data->awaited;
    finish_awaited(*j);
  }
  send_some();
  outgoing out = take_outgoing();
  hold.unlock();
  tell(std::move(out));
}

// ---- bytes that go with their task ----------------------------------------------------------------------------------

// Adds a push of a box that a task there lacks, if it may be pushed. The memory stays until the task has ended here.
void node_actor::push_with(job& j, wire::gap& g, array_core& a) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(g.where.volume()) * a.spec.element;
  if (g.lent != 0 || !pushes_.fits(bytes)) return;
  g.pushed = pushes_.add(session_, j.id, bytes, rows_of(link_, a, g.tile, g.where, false));
  ++j.pushing;
}

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
  send_some();
  outgoing out = take_outgoing();
  hold.unlock();
  tell(std::move(out));
}

}  // namespace troupe::detail
