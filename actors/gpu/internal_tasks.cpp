// What this file is for: what placement asks of a device beside tasks: copies home, arrays forgotten; and making room.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/actor.hpp"
#include "actors/gpu/boxes.hpp"
#include "actors/logic/data/home_box.hpp"

namespace troupe::detail {

using logic::replica;

// Internal tasks free memory and let others go on: they are always started, those that must wait are looked at again.
bool gpu_actor::start_internal_tasks() {
  return mail_.start_internal([this](task_record& t) { return start_internal(t) == outcome::started; });
}

// Begins the copy home that a claimed task is for. The task ends with the copy, or at once if it cannot be begun.
template <class Send>
void gpu_actor::begin_sending(task_record& t, std::uint64_t begin, Send&& send) {
  job& j = jobs_.take();
  j.task = &t;
  j.begin = begin;
  try {
    send(j);
  } catch (const error& e) {
    if (is_fatal(e)) throw;
    const std::exception_ptr why = std::current_exception();
    jobs_.give(j);
    end_task(t, why, begin);
  }
}

gpu_actor::outcome gpu_actor::start_internal(task_record& t) {
  const std::uint64_t begin = ticks();
  if (t.kind == task_kind::forget) return forget(t);
  if (t.kind == task_kind::lend) return lend(t);
  if (t.kind == task_kind::fetch) return fetch(t);
  const access& x = t.accesses[0];
  replica* r = memory_.find(*x.array, x.tile);
  if (r && r->leaving) return outcome::no_room;  // it is on its way
  if (r && x.mode == access_mode::write && !gpu_memory::take_back(*r)) return outcome::no_room;
  if (x.mode == access_mode::update && is_being_copied(x)) return outcome::no_room;
  claim(t);
  if (x.mode == access_mode::update) {
    if (!r || !r->is_current(known_version(*x.array, x.tile))) {
      end_task(t, why_rescued(t), begin);
      return outcome::started;
    }
  } else if (!r || !r->dirty) {  // evicted before: the host's copy is current; or lost, which placement has been told
    end_task(t, nullptr, begin);
    return outcome::started;
  }
  if (x.mode == access_mode::write) {  // given up: somebody overwrites all of it
    r->filled = r->dirty = false;
    if (r->pins == 0) memory_.drop(*r);
    end_task(t, nullptr, begin);
    return outcome::started;
  }
  begin_sending(t, begin, [&](job& j) { memory_.send_home(*r, j); });
  return outcome::started;
}

// Copies a part of a tile that is here to host memory. A tile that is leaving will be there as a whole.
gpu_actor::outcome gpu_actor::fetch(task_record& t) {
  const access& x = t.accesses[0];
  replica* const r = memory_.find(*x.array, x.tile);
  claim(t);
  const std::uint64_t begin = ticks();
  if (!r || !r->dirty || r->leaving) {
    end_task(t, nullptr, begin);
    return outcome::started;
  }
  begin_sending(t, begin, [&](job& j) { memory_.send_part_home(*r, *t.extra->home_boxes.front(), j); });
  return outcome::started;
}

gpu_actor::outcome gpu_actor::forget(task_record& t) {
  const std::uint64_t id = t.accesses[0].array->id;
  bool leaving = false;
  memory_.each([&](const replica& r) {
    if (r.array_id != id) return;
    if (r.leaving)
      leaving = true;
    else
      memory_.drop(r);
  });
  if (leaving) return outcome::no_room;  // until then the array's memory must stay
  claim(t);
  end_task(t, nullptr, ticks());
  return outcome::started;
}

// True if there is more room now; else there may be soon.
bool gpu_actor::make_room(const task_record& t) {
  mail_.look_ahead();
  jobs_.begin_evicting();
  replica* const r = mail_.ask_queue([this](const logic::lookahead_queue& q) { return memory_.victim(q); });
  if (!r || !gpu_memory::take_back(*r)) return false;
  // Tiles that are leaving already will make enough room.
  if (r->dirty && memory_.leaving_bytes() >= memory_.missing_bytes(t)) return false;
  if (!r->dirty) {
    memory_.drop(*r);
    return true;
  }
  job& j = jobs_.take();
  j.begin = ticks();
  try {
    memory_.send_home(*r, j);
  } catch (...) {
    jobs_.give(j);
    throw;
  }
  return false;
}

}  // namespace troupe::detail
