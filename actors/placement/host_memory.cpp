// What this file is for: placement's decisions about host memory under a budget: which task gets room, which tiles
// leave.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   placement --move: spill, load--> disk --done--> placement
//   placement --transfer--> device --done--> placement --move: spill--> disk      (the only copy is on the device)
//
// A task that is to be handed over has room for all its tiles, or for none and waits in `short_`. There the oldest
// comes first: tiles that it needs are not evicted for younger ones, and room that is being made for it is not given
// away. Room that is free anyway may go to any of them: the oldest may wait for bodies that themselves wait for a
// younger task.
#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/phase.hpp"

namespace troupe::detail {

namespace {
// Most waiting tasks that are looked at while tiles move.
constexpr std::size_t looked_at_max = 64;

using stage = tile_place::stage;

std::string bytes_text(std::uint64_t n) { return std::to_string(n) + " bytes"; }
}  // namespace

// ---- before a task is accepted --------------------------------------------------------------------------------------

void placement::check_size(const task_record& t) const {
  if (budget_) {
    const array_core* largest = nullptr;
    const std::uint64_t bytes = logic::host_bytes_of(t, budget_->limit(), largest);
    if (bytes > budget_->limit())
      throw error(errc::out_of_memory, "task '" + logic::name_of(t) + "' needs " + bytes_text(bytes) +
                                           " of host memory at once, most of it for array '" + largest->spec.name +
                                           "'; options::memory_bytes is " + std::to_string(budget_->limit()) +
                                           ": use smaller tiles or boxes, or a larger budget");
  }
  if (!has_devices_) return;
  const auto& facts = assignment_.facts();
  logic::executor_set able = assignment_.all() & logic::able_to_run(*t.kernel, facts);
  if (t.extra) able &= t.extra->executors;
  std::uint64_t most = 0;
  for (const executor_facts& f : facts) {
    if (!able.contains(f.id)) continue;
    if (f.memory_bytes == 0) return;  // it uses the host's
    most = std::max(most, f.memory_bytes);
  }
  if (const std::uint64_t bytes = !able.empty() ? logic::bytes_at_once(t) : 0; bytes > most)
    throw error(errc::out_of_memory, "task '" + logic::name_of(t) + "' needs " + bytes_text(bytes) +
                                         " at once, and of " + logic::names_of(able, facts) +
                                         ", which may run it, none has more than " + bytes_text(most) +
                                         ": use smaller tiles");
}

// ---- before a task is handed over -----------------------------------------------------------------------------------

// True if the task must wait for room or for tiles to be read from disk, or has failed for want of room.
bool placement::must_wait_for_room(task_record& t) {
  const auto needs = budget_->needs_of(t);
  if (t.marks & mark_has_room) {  // its tiles were being read from disk
    bool waits = false;
    for (const auto& n : needs) {
      if (n.place->at == stage::on_disk) return fail_for_room(t, n.place->trouble);
      if (n.place->at == stage::coming) waits = deps_.link(n.place->moving, t, false) || waits;
    }
    return waits;
  }
  std::uint64_t all = 0;
  bool is_leaving = false;
  for (const auto& n : needs) {
    all += logic::host_budget::bytes_of(*n.place);
    is_leaving = is_leaving || n.place->at == stage::leaving;
  }
  if (all > budget_->limit())  // an internal task: check_size looks at submitted ones
    return fail_for_room(
        t, std::make_exception_ptr(error(errc::out_of_memory, "it needs " + bytes_text(all) +
                                                                  " of host memory at once; options::memory_bytes is " +
                                                                  std::to_string(budget_->limit()))));
  const std::uint64_t missing = logic::host_budget::missing(needs);
  const bool at_rest = !room_changed_ && moves_ == 0 && budget_->leaving() == 0;
  if (!is_leaving && (missing == 0 || (missing <= budget_->free() && (at_rest || short_.empty()))))
    return take_room(t, needs);
  // Inserted in program order: a task that became ready later may well belong to what is under way.
  auto at = short_.end();
  while (at != short_.begin() && std::prev(at)->task->sequence > t.sequence) --at;
  short_.insert(at, {&t, ++requests_, nullptr});
  if (short_.size() <= looked_at_max) room_changed_ = true;  // a task behind those waits for the next change
  return true;
}

// True if the task could be given room at once, and would wait for no tile to leave or to be read.
bool placement::has_room_now(const task_record& t) {
  const auto needs = budget_->needs_of(t);
  for (const auto& n : needs)
    if (n.place->at == stage::leaving || n.place->at == stage::coming || (n.place->at == stage::on_disk && n.contents))
      return false;
  const std::uint64_t missing = logic::host_budget::missing(needs);
  return missing == 0 || (short_.empty() && missing <= budget_->free());
}

// Reserves room for a task. True if it has to wait until some of its tiles have been read from disk.
bool placement::take_room(task_record& t, std::span<const logic::host_budget::need> needs) {
  budget_->reserve(needs);
  t.marks |= mark_has_room;
  bool waits = false;
  for (const auto& n : needs) {
    tile_place& p = *n.place;
    if (p.at != stage::coming) continue;
    if (!deps_.alive(p.moving)) move(p, make_load(link_, *p.array, p.tile));
    waits = deps_.link(p.moving, t, false) || waits;
  }
  return waits;
}

void placement::give_room_back(task_record& t) {
  budget_->let_go(budget_->needs_of(t));
  t.marks &= static_cast<std::uint16_t>(~mark_has_room);
  room_changed_ = true;
}

// Fails a task for want of room; always returns true.
bool placement::fail_for_room(task_record& t, std::exception_ptr why) {
  fail(t,
       task_error(t, t.kind == task_kind::host_access ? "host" : assignment_.facts()[t.executor].name, 0, why,
                  failure_code(why)),
       true);
  await_verdict(t);
  retired_.push_back(&t);
  return true;
}

// Fails the awaited task if it does not fit into the budget beside the task `inside`, whose body keeps its room while
// it waits.
void placement::fail_beside(const task_record& inside, task_record& awaited) {
  if ((awaited.marks & mark_has_room) || !(inside.marks & mark_has_room) || is_fulfilled(awaited)) return;
  const std::uint64_t bytes = budget_->bytes_together(inside, awaited);
  if (bytes <= budget_->limit()) return;
  const error why(errc::out_of_memory, "it needs " + bytes_text(bytes) + " of host memory together with task '" +
                                           logic::name_of(inside) + "', which waits for it; options::memory_bytes is " +
                                           std::to_string(budget_->limit()));
  fail(awaited, task_error(awaited, "", 0, std::make_exception_ptr(why), why.code()), true);
}

// ---- room -----------------------------------------------------------------------------------------------------------

// Gives waiting tasks room, and evicts tiles for them; true if some task may go on.
bool placement::make_room() {
  if (!std::exchange(room_changed_, false) || short_.empty()) return false;
  ++passes_;
  std::size_t looked_at = 0;
  for (auto r = short_.begin(); r != short_.end() && looked_at != looked_at_max; ++r, ++looked_at)
    for (const auto& n : budget_->needs_of(*r->task)) n.place->wanted_soon = passes_;
  std::uint64_t promised = 0;
  std::size_t waiting = 0;
  bool any = false;
  for (auto r = short_.begin(); r != short_.end();) {
    task_record& t = *r->task;
    answer a = answer::refused;
    if ((t.phase.load(std::memory_order_acquire) & phase_mask) == phase_waiting) {
      a = answer_to(*r, promised);
    } else {  // cancelled meanwhile
      await_verdict(t);
      retired_.push_back(&t);
    }
    if (a == answer::waits) {
      if (++waiting >= looked_at_max && (moves_ != 0 || budget_->leaving() != 0)) break;
      ++r;
      continue;
    }
    r = short_.erase(r);
    if (a == answer::refused || take_room(t, budget_->needs_of(t))) continue;
    any = true;
    if (t.kind == task_kind::host_access)
      make_ready(t);
    else
      assignment_.resume(t);
  }
  predecessors_.clear();  // loads are not tasks of a device
  return any;
}

// Decides whether a waiting task gets room now, and evicts tiles for it. `promised`: room being made for earlier tasks.
placement::answer placement::answer_to(room_request& r, std::uint64_t& promised) {
  const auto needs = budget_->needs_of(*r.task);
  const std::uint64_t missing = logic::host_budget::missing(needs);
  std::uint64_t shared = 0;  // part of `missing` that is promised to a task before it
  bool is_leaving = false;
  for (const auto& n : needs) {
    n.place->wanted = passes_;
    is_leaving = is_leaving || n.place->at == stage::leaving;
    if (n.place->promised == passes_ && logic::host_budget::is_missing(*n.place))
      shared += logic::host_budget::bytes_of(*n.place);
  }
  const std::uint64_t own = missing - shared;
  const auto in_sight = [&] { return own + promised <= budget_->free() + budget_->leaving(); };
  const auto fits = [&] { return !is_leaving && missing <= budget_->free() && in_sight(); };
  const auto grant = [&] {
    promised -= shared;
    return answer::granted;
  };
  if (fits()) return grant();
  // First tiles that no waiting task needs, then those that only tasks behind this one need.
  for (const bool soon : {false, true})
    for (tile_place* p = budget_->oldest(); p && !in_sight();) {
      tile_place* const next = p->newer;
      if (p->wanted != passes_ && (soon || p->wanted_soon != passes_)) evict(*p, r);
      p = next;
    }
  if (fits()) return grant();
  if (in_sight()) {
    promised += own;
    for (const auto& n : needs)
      if (logic::host_budget::is_missing(*n.place)) n.place->promised = passes_;
    return answer::waits;
  }
  if (r.failed) {
    fail_for_room(*r.task, r.failed);
    return answer::refused;
  }
  // Without a disk room becomes free only as arrays lose their last handles.
  if (!disk_ && missing > budget_->free() + budget_->going()) {
    fail_for_room(*r.task, std::make_exception_ptr(error(
                               errc::out_of_memory,
                               "it needs " + bytes_text(missing) + " of host memory more, and of " +
                                   std::to_string(budget_->limit()) + " (options::memory_bytes) " +
                                   std::to_string(budget_->used()) +
                                   " are in use; nothing is spilled without options::spill_directory: free handles")));
    return answer::refused;
  }
  return answer::waits;
}

// Evicts a tile: its room is free now, or once a spill or transfer has ended, or stays taken.
void placement::evict(tile_place& p, const room_request& r) {
  if (logic::host_budget::is_spare(p)) {
    free_host_tile(link_, *p.array, p.tile);
    budget_->drop(p);
    return;
  }
  if (!disk_ || r.failed) return;
  tile_home* const home = p.array->homes ? &p.array->homes->tiles[p.tile] : nullptr;
  if (home && home->dirty_in != host_space) {
    if (deps_.alive(home->moving)) return;  // a task needs it in host memory
    task_record* const transfer = make_transfer(link_, *p.array, p.tile, false);
    hand_over(*transfer, home->dirty_in);
    home->moving = {transfer, transfer->sequence};
    budget_->leave(p);
  } else {
    budget_->leave(p);
    move(p, make_spill(link_, *p.array, p.tile));
  }
  p.for_whom = r.number;
}

// Continues an eviction when a transfer from a device has ended: spills the tile, or keeps it if it has no host bytes.
void placement::went_home(const access& x) {
  if (!x.array->places) return;
  tile_place& p = x.array->places->tiles[x.tile];
  if (p.at != stage::leaving) return;
  if (x.array->bytes[x.tile].data.load(std::memory_order_acquire)) {
    move(p, make_spill(link_, *x.array, x.tile));
  } else {
    budget_->stay(p);
    room_changed_ = true;
  }
}

void placement::move(tile_place& p, task_record* t) {
  number(*t);
  p.moving = {t, t->sequence};
  ++moves_;
  disk_->move(*t, budget_->place_on_disk(p));
}

void placement::account_for_move(task_record& t) {
  --moves_;
  room_changed_ = true;
  tile_place& p = t.accesses[0].array->places->tiles[t.accesses[0].tile];
  if (t.kind == task_kind::load) {
    if (t.error)
      budget_->could_not_come(p, t.error);
    else
      budget_->has_come(p);
    return;
  }
  if (!t.error) {
    budget_->has_left(p);
    return;
  }
  budget_->stay(p);
  budget_->give_up_on_disk(p, [&](std::uint64_t at, std::uint64_t bytes) { disk_->discard(at, bytes); });
  for (room_request& r : short_)
    if (r.number == p.for_whom) r.failed = t.error;
}

void placement::free(array_core& a) {
  if (budget_) {
    budget_->forget(a, [&](std::uint64_t at, std::uint64_t bytes) { disk_->discard(at, bytes); });
    room_changed_ = true;
  }
  task_record* const farewell = a.farewell;
  destroy(a);
  if (farewell) end_farewell(*farewell);
}

}  // namespace troupe::detail
