// What this file is for: tiles and copies that come home from another node, boxes that go there with their task.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <thread>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/logic/data/home_box.hpp"
#include "actors/placement/placement.hpp"
#include "actors/remote_node/actor.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {

void put(net::writer& to, std::uint64_t number, const array_core& a, std::uint32_t tile, const logic::box4& where) {
  wire::put(to, wire::box_request{number, a.id, {tile, where}});
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
      occupant_.send(frame);
      known_.forget(a.id);
    }
    claim(t);
    end_internal(t, nullptr);
    return true;
  }
  claim(t);
  const bool part = t.kind == task_kind::fetch;
  if (t.kind != task_kind::transfer && !part) {
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
  frame.fixed(wire::kind::fetch_home);
  put(frame, j.id, a, x.tile, part ? t.extra->home_boxes.front()->where : a.tile_box(x.tile));
  occupant_.send(frame);
  return true;
}

// A tile, or a part of one, has come home, or (with an error) the node had nothing to send.
void node_actor::come_home(job& j, std::exception_ptr why) {
  task_record& t = *j.task;
  if (!is_internal(t.kind) || j.writing != 0) throw error(errc::protocol_error, "the answer to what was not asked");
  const access& x = t.accesses[0];
  const std::uint64_t array = x.array->id;
  const float taken_ns = meter_.end_home(j.begin);
  if (t.kind == task_kind::fetch) {  // the tile stays there; if it is lost, the one that needs it as a whole is told
    t.extra->home_boxes.front()->here = !why;
    if (!why) t.measured_ns = std::max(1.0f, taken_ns);
  } else if (!why) {
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
  frame.fixed(wire::kind::snapshot);
  put(frame, number, a, tile, a.tile_box(tile));
  occupant_.send(frame);
  return true;
}

// Asks for copies of what the task writes; the task ends when they are here.
void node_actor::ask_for_written(job& j) {
  known_.each_written(*j.task, [&](const access& x) { j.copies += ask_for_copy(*x.array, x.tile, j.id); });
}

// Takes a copy that has come, or that the node could not send. Returns the job, if it has not ended, that waits for it.
job* node_actor::copy_arrived(std::uint64_t number, bool whole) {
  copies_home::arrival a = copies_.arrived(number, whole);
  one_less_coming(a.array->id);
  job* const j = a.for_job != 0 ? jobs_.find(a.for_job) : nullptr;
  if (!j) return nullptr;
  if (a.tile.array) j->brought.push_back(std::move(a.tile));
  --j->copies;
  return j;
}

// ---- bytes that go with their task ----------------------------------------------------------------------------------

// Adds a push of a box that a task there lacks, if it may be pushed. The memory stays until the task has ended here.
void node_actor::push_with(job& j, wire::gap& g, array_core& a) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(g.where.volume()) * a.spec.element;
  if (g.lent != 0 || !pushes_.fits(bytes)) return;
  g.pushed = pushes_.add(occupant_.session(), j.id, bytes, rows_of(rt_, a, g.tile, g.where, false));
  ++j.pushing;
}

}  // namespace troupe::detail
