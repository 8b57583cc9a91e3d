// What this file is for: decisions about host memory under a budget.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/host_memory.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/array_coherence.hpp"
#include "actors/logic/data/budgeted_tiles.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/internal_tasks.hpp"
#include "actors/placement/internal_tasks.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/task_name.hpp"

namespace troupe::detail {

namespace {
// Most waiting tasks that are looked at while tiles move.
constexpr std::size_t looked_at_max = 64;

using stage = budgeted_tile::stage;

std::string bytes_text(std::uint64_t n) { return std::to_string(n) + " bytes"; }
}  // namespace

// ---- before a task is accepted --------------------------------------------------------------------------------------

void host_memory::check_size(const task_record& t) const {
  const array_core* largest = nullptr;
  const std::uint64_t bytes = logic::host_bytes_of(t, budget_.limit(), largest);
  if (bytes > budget_.limit())
    throw error(errc::out_of_memory, "task '" + name_of(t) + "' needs " + bytes_text(bytes) +
                                         " of host memory at once, most of it for array '" + largest->spec.name +
                                         "'; options::memory_bytes is " + std::to_string(budget_.limit()) +
                                         ": use smaller tiles or boxes, or a larger budget");
}

// ---- before a task is handed over -----------------------------------------------------------------------------------

bool host_memory::refuse(task_record& t, const std::exception_ptr& why) {
  owner_.room_refused(t, why);
  return true;
}

bool host_memory::must_wait(task_record& t) {
  const auto needs = budget_.needs_of(t);
  if (t.marks & mark_has_room) {  // its tiles were being read from disk
    bool waits = false;
    for (const auto& n : needs) {
      if (n.tile->at == stage::on_disk) return refuse(t, n.tile->trouble);
      if (n.tile->at == stage::coming) waits = graph_.link(n.tile->moving, t, false) || waits;
    }
    return waits;
  }
  std::uint64_t all = 0;
  bool is_leaving = false;
  for (const auto& n : needs) {
    all += logic::host_budget::bytes_of(*n.tile);
    is_leaving = is_leaving || n.tile->at == stage::leaving;
  }
  if (all > budget_.limit())  // an internal task: check_size looks at submitted ones
    return refuse(
        t, std::make_exception_ptr(error(errc::out_of_memory, "it needs " + bytes_text(all) +
                                                                  " of host memory at once; options::memory_bytes is " +
                                                                  std::to_string(budget_.limit()))));
  const std::uint64_t missing = logic::host_budget::missing(needs);
  const bool at_rest = !changed_ && moves_ == 0 && budget_.leaving() == 0;
  if (!is_leaving && (missing == 0 || (missing <= budget_.free() && (at_rest || short_.empty()))))
    return take_room(t, needs);
  // Inserted in program order: a task that became ready later may well belong to what is under way.
  auto at = short_.end();
  while (at != short_.begin() && std::prev(at)->task->sequence > t.sequence) --at;
  short_.insert(at, {&t, ++requests_, nullptr});
  if (short_.size() <= looked_at_max) changed_ = true;  // a task behind those waits for the next change
  return true;
}

bool host_memory::has_room_now(const task_record& t) {
  const auto needs = budget_.needs_of(t);
  for (const auto& n : needs)
    if (n.tile->at == stage::leaving || n.tile->at == stage::coming || (n.tile->at == stage::on_disk && n.contents))
      return false;
  const std::uint64_t missing = logic::host_budget::missing(needs);
  return missing == 0 || (short_.empty() && missing <= budget_.free());
}

bool host_memory::take_room(task_record& t, std::span<const logic::host_budget::need> needs) {
  budget_.reserve(needs);
  t.marks |= mark_has_room;
  ++holders_;
  bool waits = false;
  for (const auto& n : needs) {
    budgeted_tile& p = *n.tile;
    if (p.at != stage::coming) continue;
    if (!graph_.alive(p.moving)) move(p, make_load(rt_, *p.array, p.tile));
    waits = graph_.link(p.moving, t, false) || waits;
  }
  return waits;
}

void host_memory::give_back(task_record& t) {
  budget_.let_go(budget_.needs_of(t));
  t.marks &= static_cast<std::uint16_t>(~mark_has_room);
  --holders_;
  std::erase_if(waits_, [&](const body_wait& w) { return w.inside.task == &t; });
  changed_ = true;
}

void host_memory::note_wait(task_record& inside, task_record& awaited) {
  if (!(inside.marks & mark_has_room)) return;
  std::erase_if(waits_, [&](const body_wait& w) { return w.inside.task == &inside; });
  waits_.push_back({{&inside, inside.sequence}, {&awaited, awaited.sequence}});
  changed_ = true;
}

// True if each task that has room waits for one that waits for room, or for another such task.
bool host_memory::stands_still() {
  if (moves_ != 0 || budget_.leaving() != 0) return false;
  std::erase_if(waits_, [&](const body_wait& w) { return !graph_.alive(w.awaited); });
  if (waits_.empty() || waits_.size() != holders_) return false;
  return std::ranges::all_of(waits_, [&](const body_wait& w) {
    return std::ranges::find(short_, w.awaited.task, &request::task) != short_.end() ||
           std::ranges::any_of(waits_, [&](const body_wait& other) { return other.inside.task == w.awaited.task; });
  });
}

// Refuses the youngest task that a body waits for: the body goes on with that error, and what it holds becomes free.
void host_memory::end_standstill() {
  const auto is_awaited = [&](const request& r) {
    return std::ranges::any_of(waits_, [&](const body_wait& w) { return w.awaited.task == r.task; });
  };
  auto youngest = short_.end();
  for (auto r = short_.begin(); r != short_.end(); ++r)
    if (is_awaited(*r) && (youngest == short_.end() || r->task->sequence > youngest->task->sequence)) youngest = r;
  if (youngest == short_.end()) return;
  task_record& t = *youngest->task;
  short_.erase(youngest);
  owner_.room_refused(
      t, std::make_exception_ptr(
             error(errc::out_of_memory,
                   "it needs " + bytes_text(logic::host_budget::missing(budget_.needs_of(t))) +
                       " of host memory, and all of options::memory_bytes, " + std::to_string(budget_.limit()) +
                       ", is in use by tasks whose bodies wait for others that need more: allow more, use "
                       "smaller tiles, or wait outside tasks")));
}

std::exception_ptr host_memory::too_much_beside(const task_record& inside, const task_record& awaited) {
  if ((awaited.marks & mark_has_room) || !(inside.marks & mark_has_room) || is_fulfilled(awaited)) return nullptr;
  const std::uint64_t bytes = budget_.bytes_together(inside, awaited);
  if (bytes <= budget_.limit()) return nullptr;
  return std::make_exception_ptr(error(
      errc::out_of_memory, "it needs " + bytes_text(bytes) + " of host memory together with task '" + name_of(inside) +
                               "', which waits for it; options::memory_bytes is " + std::to_string(budget_.limit())));
}

// ---- room -----------------------------------------------------------------------------------------------------------

bool host_memory::give_room() {
  if (!std::exchange(changed_, false) || short_.empty()) return false;
  ++passes_;
  std::size_t looked_at = 0;
  for (auto r = short_.begin(); r != short_.end() && looked_at != looked_at_max; ++r, ++looked_at)
    for (const auto& n : budget_.needs_of(*r->task)) n.tile->wanted_soon = passes_;
  std::uint64_t promised = 0;
  std::size_t waiting = 0;
  bool any = false;
  for (auto r = short_.begin(); r != short_.end();) {
    task_record& t = *r->task;
    if ((t.phase.load(std::memory_order_acquire) & phase_mask) != phase_waiting) {
      r = short_.erase(r);
      owner_.room_unwanted(t);
      continue;
    }
    const reply v = answer_to(*r, promised);
    if (v.what == answer::waits) {
      if (++waiting >= looked_at_max && (moves_ != 0 || budget_.leaving() != 0)) break;
      ++r;
      continue;
    }
    r = short_.erase(r);
    if (v.what == answer::refused) {
      owner_.room_refused(t, v.why);
    } else if (!take_room(t)) {
      any = true;
      owner_.room_granted(t);
    }
  }
  if (!any && stands_still()) end_standstill();
  return any;
}

std::vector<task_record*> host_memory::take_waiting() {
  std::vector<task_record*> all;
  for (const request& r : std::exchange(short_, {})) all.push_back(r.task);
  return all;
}

// Decides whether a waiting task gets room now, and evicts tiles for it. `promised`: room being made for earlier tasks.
host_memory::reply host_memory::answer_to(request& r, std::uint64_t& promised) {
  const auto needs = budget_.needs_of(*r.task);
  const std::uint64_t missing = logic::host_budget::missing(needs);
  std::uint64_t shared = 0;  // part of `missing` that is promised to a task before it
  bool is_leaving = false;
  for (const auto& n : needs) {
    n.tile->wanted = passes_;
    is_leaving = is_leaving || n.tile->at == stage::leaving;
    if (n.tile->promised == passes_ && logic::host_budget::is_missing(*n.tile))
      shared += logic::host_budget::bytes_of(*n.tile);
  }
  const std::uint64_t own = missing - shared;
  const auto in_sight = [&] { return own + promised <= budget_.free() + budget_.leaving(); };
  const auto fits = [&] { return !is_leaving && missing <= budget_.free() && in_sight(); };
  const auto grant = [&] {
    promised -= shared;
    return reply{answer::granted};
  };
  if (fits()) return grant();
  // First tiles that no waiting task needs, then those that only tasks behind this one need.
  for (const bool soon : {false, true})
    for (budgeted_tile* p = budget_.oldest(); p && !in_sight();) {
      budgeted_tile* const next = p->newer;
      if (p->wanted != passes_ && (soon || p->wanted_soon != passes_)) evict(*p, r);
      p = next;
    }
  if (fits()) return grant();
  if (in_sight()) {
    promised += own;
    for (const auto& n : needs)
      if (logic::host_budget::is_missing(*n.tile)) n.tile->promised = passes_;
    return {answer::waits};
  }
  if (r.failed) return {answer::refused, r.failed};
  // Without a disk room becomes free only as arrays lose their last handles.
  if (!disk_ && missing > budget_.free() + budget_.going())
    return {answer::refused,
            std::make_exception_ptr(error(
                errc::out_of_memory,
                "it needs " + bytes_text(missing) + " of host memory more, and of " + std::to_string(budget_.limit()) +
                    " (options::memory_bytes) " + std::to_string(budget_.used()) +
                    " are in use; nothing is spilled without options::spill_directory: free handles"))};
  return {answer::waits};
}

// Evicts a tile: its room is free now, or once a spill or transfer has ended, or stays taken.
void host_memory::evict(budgeted_tile& p, const request& r) {
  if (logic::host_budget::is_spare(p)) {
    free_host_tile(rt_, *p.array, p.tile);
    budget_.drop(p);
    return;
  }
  if (!disk_ || r.failed) return;
  coherence_entry* const entry = p.array->coherence ? &p.array->coherence->tiles[p.tile] : nullptr;
  if (entry && entry->dirty_in != host_space) {
    if (graph_.alive(entry->moving)) return;  // a task needs it in host memory
    owner_.fetch(*p.array, p.tile, *entry);
    budget_.leave(p);
  } else {
    budget_.leave(p);
    move(p, make_spill(rt_, *p.array, p.tile));
  }
  p.for_whom = r.number;
}

void host_memory::went_home(const access& x) {
  if (!x.array->budgeted) return;
  budgeted_tile& p = x.array->budgeted->tiles[x.tile];
  if (p.at != stage::leaving) return;
  if (x.array->bytes[x.tile].data.load(std::memory_order_acquire)) {
    move(p, make_spill(rt_, *x.array, x.tile));
  } else {
    budget_.stay(p);
    changed_ = true;
  }
}

void host_memory::move(budgeted_tile& p, task_record* t) {
  number(graph_, *t);
  p.moving = {t, t->sequence};
  ++moves_;
  disk_->move(*t, budget_.offset_on_disk(p));
}

void host_memory::account_for_move(task_record& t) {
  --moves_;
  changed_ = true;
  budgeted_tile& p = t.accesses[0].array->budgeted->tiles[t.accesses[0].tile];
  if (t.kind == task_kind::load) {
    if (t.error)
      budget_.could_not_come(p, t.error);
    else
      budget_.has_come(p);
    return;
  }
  if (!t.error) {
    budget_.has_left(p);
    return;
  }
  budget_.stay(p);
  budget_.give_up_on_disk(p, [&](std::uint64_t at, std::uint64_t bytes) { disk_->discard(at, bytes); });
  for (request& r : short_)
    if (r.number == p.for_whom) r.failed = t.error;
}

void host_memory::forget(array_core& a) {
  budget_.forget(a, [&](std::uint64_t at, std::uint64_t bytes) { disk_->discard(at, bytes); });
  changed_ = true;
}

// ---- for others -----------------------------------------------------------------------------------------------------

bool host_memory::read_from_disk(const array_core& a, std::uint32_t tile, std::byte* to) const {
  if (!a.budgeted || a.spec.adopted) return false;
  const budgeted_tile& p = a.budgeted->tiles[tile];
  const auto is_there = [&] { return a.bytes[tile].data.load(std::memory_order_acquire) != nullptr; };
  const bool leaves = p.at == stage::leaving;
  if (p.offset < 0 || (!leaves && p.at != stage::coming && is_there())) return false;
  disk_->read(static_cast<std::uint64_t>(p.offset), to, a.bytes_of(tile));
  return !leaves || !is_there();  // else the spill may have failed
}

bool host_memory::keeps_room(const array_core& a, std::uint32_t tile) {
  return a.spec.adopted || a.budgeted->tiles[tile].at == stage::here;
}

void host_memory::report(runtime_report& r) const {
  if (!disk_) return;
  r.bytes_spilled = disk_->bytes_out();
  r.bytes_read_back = disk_->bytes_in();
  r.bytes_on_disk = budget_.on_disk();
}

}  // namespace troupe::detail
