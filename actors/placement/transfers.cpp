// What this file is for: placement's decisions about data: what must move before a task may run, and accounts of
// copies.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <bit>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/placement/internal_tasks.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/phase.hpp"

namespace troupe::detail {

// ---- before a task is handed over -----------------------------------------------------------------------------------

// Takes the tasks that must wait for data out of the outgoing ones. True if a task has failed meanwhile, or executors
// have room for others. The latter not under a budget: the others would compete for the room.
bool placement::set_aside_for_data() {
  bool any = false;
  do {
    for (int i = assignment_.next_outgoing(0); i != logic::executor_set::end; i = assignment_.next_outgoing(i + 1))
      std::erase_if(assignment_.outgoing(i), [&](task_record* t) {
        if ((t->marks & mark_behind) || !must_wait_for_data(*t)) return false;  // behind: send_behind has looked at it
        if (!host_memory_) assignment_.set_aside(*t);
        return any = true;
      });
  } while (host_memory_ && give_room());
  return !retired_.empty() || (any && !host_memory_ && assignment_.kept() != 0);
}

// Gives tasks that wait for room in host memory what is free by now; true if some task may go on.
bool placement::give_room() {
  const bool any = host_memory_->give_room();
  chains_.forget_edges();  // loads are not tasks of a device
  return any;
}

void placement::room_granted(task_record& t) {
  if (t.kind == task_kind::host_access)
    make_ready(t);
  else
    assignment_.resume(t);
}

void placement::room_refused(task_record& t, const std::exception_ptr& why) { fail_unstarted(t, why); }

void placement::room_unwanted(task_record& t) {
  await_verdict(t);
  retired_.push_back(&t);
}

// Has the only current copy of a tile, which another memory space has, copied to host memory.
void placement::fetch(array_core& a, std::uint32_t tile, tile_home& home) {
  task_record* const transfer = make_transfer(link_, a, tile, false);
  hand_over(*transfer, home.dirty_in);
  home.moving = {transfer, transfer->sequence};
}

// True if the task must wait or has failed. If the only current copy of a tile that it touches is elsewhere, it waits
// for a transfer like for any other task.
bool placement::must_wait_for_data(task_record& t) {
  const memory_space where = t.kind == task_kind::host_access ? host_space : assignment_.space_of(t);
  if (const std::exception_ptr lost = logic::lost_input(t)) {
    fail_unstarted(t, lost);
    return true;
  }
  bool waits = false;
  const bool node = where != host_space && is_node(t), pulls = node && !(t.extra && t.extra->no_pulls);
  if (t.extra) {
    t.extra->loans.clear();
    t.extra->pulls.clear();
  }
  logic::each_in_the_way(t, where, [&](array_core& a, std::uint32_t tile, tile_home& home, logic::wanted w) {
    if (pulls && w == logic::wanted::only_read && assignment_.reaches(where, home.dirty_in)) return;
    if (!node && w >= logic::wanted::anywhere && assignment_.reaches(where, home.dirty_in)) {
      const borrowed b = borrow(t, a, tile, home);
      if (b == borrowed::waits) waits = true;
      if (b != borrowed::refused) return;
    }
    if (!deps_.alive(home.moving)) {
      task_record* transfer = make_transfer(link_, a, tile, w == logic::wanted::nothing);
      hand_over(*transfer, home.dirty_in);
      home.moving = {transfer, transfer->sequence};
    }
    deps_.link(home.moving, t, true);
    waits = true;
  });
  const auto alive = [this](task_ref r) { return r.task != retiring_ && deps_.alive(r); };
  if (has_devices_)
    logic::each_part_clash(t, where, alive, [&](task_ref r) { waits = deps_.link(r, t, false) || waits; });
  if (!waits && host_memory_) waits = host_memory_->must_wait(t);
  chains_.forget_edges();  // the tasks linked here do not count as ahead
  if (waits) return true;
  if (log_) log_->note_overwriting(t, where);
  if (has_devices_) logic::note_parts(t, where, alive);
  if (pulls) choose_sources(t, where);
  if (where != host_space) logic::note_sent(t, where, node);
  return false;
}

// Fails a task that has not begun, at the executor that was to run it.
void placement::fail_unstarted(task_record& t, const std::exception_ptr& why) {
  fail(t,
       task_error(t, t.kind == task_kind::host_access ? "host" : assignment_.facts()[t.executor].name, 0, why,
                  failure_code(why)),
       true);
  await_verdict(t);
  retired_.push_back(&t);
}

// Hands an internal task to the device of a space; it comes before all that waits there.
void placement::hand_over(task_record& t, memory_space where) {
  number(deps_, t);
  if (log_ && t.kind == task_kind::transfer) log_->note_overwriting(t, host_space);
  t.executor = static_cast<std::uint16_t>(assignment_.executor_of(where));
  task_record* const one = &t;
  executors_[t.executor]->run_tasks({&one, 1}, executor::attention::nobody);
  notifications_.add(*executors_[t.executor]);
}

// ---- what has ended or was lost -------------------------------------------------------------------------------------

void placement::account_for_data(task_record& t) {
  if (t.marks & mark_has_room) host_memory_->give_back(t);
  if (t.kind == task_kind::spill || t.kind == task_kind::load) {
    host_memory_->account_for_move(t);
    return;
  }
  if (t.kind == task_kind::transfer) {
    const access& x = t.accesses[0];
    if (log_) log_->note_at_home(t, host_space);
    tile_home& home = x.array->homes->tiles[x.tile];
    if (home.moving.task != &t) return;  // its device failed, and another one has been asked
    home.moving = {};
    if (x.mode == access_mode::update && home.dirty_in != no_space) return;  // the tile was written meanwhile
    const memory_space from = std::exchange(home.dirty_in, host_space);
    home.loan = nullptr;
    if (t.measured_ns > 0)
      assignment_.learn_transfer(assignment_.facts()[t.executor].space, host_space,
                                 static_cast<std::uint64_t>(x.array->tile_box(x.tile).volume()) * x.array->spec.element,
                                 t.measured_ns);
    if (t.error && x.mode == access_mode::update) {
      home.cached.erase(assignment_.facts()[t.executor].space);
      rescue(*x.array, x.tile, home, t.error);
      if (home.dirty_in == no_space) return;  // another device is asked
    } else if (t.error && from != no_space && assignment_.facts()[t.executor].kind == device_kind::node) {
      home.dirty_in = from;  // the node cannot send it; no_space: and it could not be made again
      const std::pair<array_core*, std::uint32_t> lost{x.array, x.tile};
      lose(*executors_[t.executor], {&lost, 1}, t.error);
      if (home.dirty_in == no_space) return;  // the tile is being made again
    } else if (t.error) {
      home.cached.clear();
      home.lost = t.error;
    }
    if (host_memory_) host_memory_->went_home(x);
  } else if (t.kind == task_kind::host_access || (t.marks & mark_sent)) {
    const memory_space where = t.kind == task_kind::host_access ? host_space : assignment_.space_of(t);
    const bool node = log_ && is_node(t);
    if (node) log_->note_read(t);
    logic::note_done(t, where);
    if (log_) {
      log_->note_at_home(t, where);
      log_->note_ran(t, where, node);
      if (node) save_some();
    }
  }
}

// ---- the end of an array --------------------------------------------------------------------------------------------

void placement::free_if_unused(array_core& a) {
  if (!a.dropped || a.users != 0) return;
  if (a.homes && !a.homes->spaces.empty()) {
    if (a.is_borrowed() && bring_home(a)) return;
    if (log_) log_->forget(a);
    forget_copies(a);
    return;
  }
  if (log_) log_->forget(a);
  free(a);
}

// Has an array of borrowed memory copied back when its last handle has gone; true if some tile is on its way.
bool placement::bring_home(array_core& a) {
  bool any = false;
  for (std::uint32_t t = 0; t < a.tile_count; ++t) {
    tile_home& home = a.homes->tiles[t];
    if (home.dirty_in == host_space) continue;
    fetch(a, t, home);
    any = true;
  }
  return any;
}

void placement::free(array_core& a) {
  if (host_memory_) host_memory_->forget(a);
  task_record* const farewell = a.farewell;
  destroy(a);
  if (farewell) end_farewell(*farewell);
}

void placement::bid_farewell(task_record& t) {
  if (!farewells_.add(t) && claim(t)) fulfil(t, board_);
  inbox_.post(mail(&t, mail::submitted));
}

void placement::end_farewell(task_record& t) {
  farewells_.remove(t);
  if (claim(t)) fulfil(t, board_);
  if (t.references.fetch_sub(1, std::memory_order_acq_rel) == 1) recycle(&t);
}

void placement::end_farewells() {
  with_turn([&] {  // no farewell ends meanwhile
    farewells_.end_all([&](task_record& t) {
      if (claim(t)) fulfil(t, board_);
    });
  });
}

// Each device frees its copies; the last one to have done so frees the array.
void placement::forget_copies(array_core& a) {
  std::exchange(a.homes->spaces, {}).each([&](std::size_t s) {
    hand_over(*make_forget(link_, a), static_cast<memory_space>(s));
  });
}

}  // namespace troupe::detail
