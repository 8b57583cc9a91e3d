// What this file is for: tiles that were lost with a node are made again from data that is here.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Placement tells the log (logic/lineage) of each task that ran on a node, and of each tile of host memory that is
// overwritten; values that the log still needs are copied aside first. When a node dies, a thread repeats the calls
// that the log names on stand-ins (execution/reexecution), and tasks that need the results wait as for a transfer.
#include <algorithm>

#include <troupe/error.hpp>

#include "actors/execution/reexecution.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/placement/internal_tasks.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {

std::uint32_t version_of(const array_core& a, std::uint32_t tile) {
  return a.homes ? a.homes->tiles[tile].version.load(std::memory_order_relaxed) : 1;
}

// True if the access changes bytes of host memory when its task runs in space `where`.
bool changes_home(const access& x, memory_space where) {
  return x.array && logic::writes(x) && (where == host_space || !logic::is_whole(x));
}

// Ratio of the cost of making tiles to the cost of copying them to this node from which copying is worth it.
constexpr float worth_of_a_link = 10;

std::exception_ptr not_made_again(const task_record& t, const std::string& node, const std::exception_ptr& why) {
  const access& x = t.accesses[0];
  return std::make_exception_ptr(error(
      errc::data_lost, "array '" + x.array->spec.name + "', tile " + std::to_string(x.tile) +
                           ": its only copy went with " + node + ", and it could not be made again: " + text_of(why)));
}

// True if all of the tile is overwritten, and the task does not read what was there.
bool replaces_home(const task_record& t, const access& x) {
  if (t.kind == task_kind::transfer) return true;
  if (!logic::is_whole(x) || x.mode != access_mode::write) return false;
  return std::none_of(t.accesses, t.accesses + t.access_count,
                      [&](const access& other) { return &other != &x && other.array == x.array; });
}

}  // namespace

// ---- what the log is told -------------------------------------------------------------------------------------------

// Returns a packed copy of a tile, from host memory or, if it is being loaded, spilled or not there, from the disk.
std::shared_ptr<std::byte[]> placement::copy_of(array_core& a, std::uint32_t tile) {
  std::shared_ptr<std::byte[]> copy = new_view_bytes(a.bytes_of(tile), a.spec.name);  // a repeated call may read it
  if (host_memory_ && host_memory_->read_from_disk(a, tile, copy.get())) return copy;
  std::byte* to = copy.get();
  for (const auto& row : rows_of(link_, a, tile, a.tile_box(tile), false)) to = std::copy(row.begin(), row.end(), to);
  return copy;
}

// Keeps a copy of the host's version of a tile if the log needs it. `overwritten`: nothing else needs the host's bytes,
// so they are taken instead of copied.
void placement::put_aside(array_core& a, std::uint32_t tile, bool overwritten) {
  const auto needed = log_->must_keep(a.id, tile);
  if (!needed) return;
  const bool takes = overwritten && !a.spec.adopted && a.bytes[tile].data.load(std::memory_order_acquire);
  std::shared_ptr<std::byte[]> copy = takes ? take_host_tile(link_, a, tile) : copy_of(a, tile);
  if (log_->kept(*needed, a.bytes_of(tile))) aside_[key_of(*needed)] = std::move(copy);
}

void placement::drop_unwanted() {
  for (const logic::value& v : log_->take_unwanted()) aside_.erase(key_of(v));
}

// Tells the log which tiles of host memory a task that is about to be handed over will overwrite. Runs once for a task,
// which may be looked at several times before.
void placement::note_overwriting(task_record& t, memory_space where) {
  if (!log_ || (t.marks & mark_overwrites)) return;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (t.kind == task_kind::transfer ? x.mode == access_mode::write : !changes_home(x, where)) continue;
    t.marks |= mark_overwrites;
    logic::each_tile_of(x, [&](std::uint32_t tile) {
      put_aside(*x.array, tile, replaces_home(t, x));
      log_->leaves_home(x.array->id, tile);
    });
  }
  drop_unwanted();  // not before: values at home need no copies aside
}

// Tells the log which tiles a retired task has written in host memory, with the versions after it, or that it failed.
void placement::note_at_home(const task_record& t, memory_space where) {
  if (!log_ || !(t.marks & mark_overwrites)) return;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (t.kind == task_kind::transfer ? x.mode == access_mode::write : !changes_home(x, where)) continue;
    logic::each_tile_of(x, [&](std::uint32_t tile) {
      if (t.error)
        log_->stays_away(x.array->id, tile);
      else
        log_->came_home(x.array->id, tile, version_of(*x.array, tile));
    });
  }
  drop_unwanted();
}

// Tells the log that a returned task, which is placed again, may have begun to overwrite its tiles of host memory.
void placement::note_not_run(task_record& t) {
  if (!log_ || !(t.marks & mark_overwrites)) return;
  t.marks &= static_cast<std::uint16_t>(~mark_overwrites);
  const memory_space where = assignment_.space_of(t);
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!changes_home(x, where)) continue;
    logic::each_tile_of(x, [&](std::uint32_t tile) { log_->stays_away(x.array->id, tile); });
  }
  drop_unwanted();
}

// Collects in `ran_` the versions that a task has read, before its own writes are accounted for.
void placement::note_read(const task_record& t) {
  ran_.reads.clear();
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || x.mode == access_mode::write || x.mode == access_mode::reduce) continue;
    logic::each_tile_of(x, [&](std::uint32_t tile) {
      ran_.reads.push_back({x.array->id, tile, version_of(*x.array, tile)});
    });
  }
}

// Tells the log of a task that ran in another space: a call with its writes for a node, overwritten tiles for a device.
void placement::note_ran(task_record& t, memory_space where) {
  if (where == host_space || t.error) return;
  const bool node = is_node(t);
  logic::lineage::call& c = ran_;
  c.writes.clear();
  const float worth = node ? worth_of_a_link * static_cast<float>(assignment_.slots_of(t.executor)) : 0;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || x.mode == access_mode::read || !logic::is_whole(x)) continue;
    const std::uint32_t version = version_of(*x.array, x.tile);
    const std::uint64_t bytes = x.array->bytes_of(x.tile);
    if (node)
      c.writes.push_back({{x.array->id, x.tile, version},
                          bytes,
                          worth * assignment_.transfer_ns(where, host_space, bytes),
                          x.array->spec.replicas > 1});
    else
      log_->overwritten(x.array->id, x.tile, version);
  }
  if (!node || c.writes.empty()) return;
  c.what = t.extra ? t.extra->call : nullptr;
  c.cost_ns = t.measured_ns;
  c.repeatable = c.what && is_repeatable(t);
  c.place = assignment_.facts()[t.executor].id;
  for (int i = 0; i < t.access_count; ++i)
    if (array_core* a = t.accesses[i].array) logged_[a->id] = a;
  log_->ran(std::move(c));
  if (t.extra && t.extra->call)
    for (saved_tile& s : std::exchange(static_cast<const repeatable_call*>(t.extra->call.get())->brought, {})) {
      s.version = version_of(*s.array, s.tile);
      take_home(where, s);
    }
  save_some();
}

// Tells the log that an array is about to be freed, after copying aside what the log needs of it.
void placement::forget_in_log(array_core& a) {
  if (!log_) return;
  for (const logic::value& v : log_->must_keep(a.id)) put_aside(a, v.tile, true);
  log_->forget(a.id);
  logged_.erase(a.id);
  drop_unwanted();
}

// ---- after a loss ---------------------------------------------------------------------------------------------------

// Starts the re-execution of the calls that wrote the lost tiles; returns the tiles that cannot be made again.
std::vector<std::pair<array_core*, std::uint32_t>> placement::make_again(
    const executor& e, std::span<const std::pair<array_core*, std::uint32_t>> lost) {
  std::vector<std::pair<array_core*, std::uint32_t>> left;
  std::vector<logic::value> values;
  std::map<std::pair<std::uint64_t, std::uint32_t>, array_core*> arrays;
  for (const auto& [a, tile] : lost) {
    if (a->homes->tiles[tile].dirty_in != e.facts().space) continue;
    values.push_back({a->id, tile, version_of(*a, tile)});
    arrays[{a->id, tile}] = a;
  }
  if (values.empty()) return left;
  logic::remake_plan plan = log_->remake(values);
  for (const auto& h : plan.holes) {
    log_->give_up(h.lost.array, h.lost.tile);
    left.emplace_back(arrays.at({h.lost.array, h.lost.tile}), h.lost.tile);
  }
  if (plan.remade.empty()) return left;

  // Sources are copied now: the host's bytes may change as soon as the turn has been left.
  auto copies = std::make_shared<std::map<value_key, std::shared_ptr<std::byte[]>>>();
  const auto fix = [&](logic::remake_plan::source& s) {
    using place = logic::remake_plan::place;
    if (s.where == place::step) return;
    std::shared_ptr<std::byte[]>& copy = (*copies)[key_of(s.what)];
    if (s.where == place::home && !copy) copy = copy_of(*logged_.at(s.what.array), s.what.tile);
    if (s.where == place::kept && !copy) copy = aside_.at(key_of(s.what));
    s.where = place::kept;
  };
  for (auto& step : plan.steps)
    for (auto& s : step.reads) fix(s);
  for (auto& s : plan.remade) fix(s);

  std::vector<task_record*> tasks;
  for (const auto& s : plan.remade) {
    array_core& a = *arrays.at({s.what.array, s.what.tile});
    task_record* const t = make_transfer(link_, a, s.what.tile, false);
    number(deps_, *t);
    t->executor = e.facts().id;
    note_overwriting(*t, host_space);
    tile_home& home = a.homes->tiles[s.what.tile];
    home.cached.erase(e.facts().space);
    home.dirty_in = no_space;
    home.moving = {t, t->sequence};
    tasks.push_back(t);
  }
  auto repeat = [this, plan = std::move(plan), copies, tasks, name = e.facts().shown_name()] {
    const auto kept = [&](const logic::value& v) { return copies->at(key_of(v)).get(); };
    std::vector<remade_value> results;
    std::exception_ptr failed;
    remade_bodies bodies;
    try {
      results = remake(plan, kept, link_, &bodies);
    } catch (...) {
      failed = std::current_exception();
    }
    bodies_remade_.fetch_add(bodies.run, std::memory_order_relaxed);
    bodies_remade_threw_.fetch_add(bodies.threw, std::memory_order_relaxed);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      claim(*tasks[i]);
      if (const std::exception_ptr why = i < results.size() ? results[i].error : failed)
        tasks[i]->error = not_made_again(*tasks[i], name, why);
      fulfil(*tasks[i], board_);
    }
    report_done(tasks, nullptr);
  };
  if (aside_run_)
    aside_run_(std::move(repeat));
  else
    remakers_.emplace_back(std::move(repeat));
  return left;
}

void placement::wait_remade() {
  std::vector<std::thread> all;
  with_turn([&] { all.swap(remakers_); });
  for (std::thread& t : all) t.join();
}

}  // namespace troupe::detail
