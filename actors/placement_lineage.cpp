// What this file is for: what was lost with a node is made again from what is here.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Placement tells the log (logic/lineage) of each task that ran on a node, and of each tile of host memory that is
// overwritten; copies of what the log still needs are put aside first. When a node dies, a thread repeats the calls that
// the log names on stand-ins (remaking), and who needs what they make waits for it as for a transfer.
#include <algorithm>

#include <troupe/error.hpp>

#include "actors/logic/directory.hpp"
#include "actors/placement.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/remaking.hpp"
#include "actors/rows.hpp"
#include "actors/task_errors.hpp"

namespace troupe::detail {

namespace {

// What the log wants saved is asked for in portions of this.
constexpr std::uint64_t save_bytes = 64u << 20;

std::uint32_t version_of(const array_core& a, std::uint32_t tile) {
  return a.homes ? a.homes->tiles[tile].version.load(std::memory_order_relaxed) : 1;
}

// The access changes bytes of the host's memory, when its task runs in that space.
bool changes_home(const access& x, memory_space where) {
  return x.array && logic::writes(x) && (where == host_space || !logic::is_whole(x));
}

std::shared_ptr<std::byte[]> copy_of(house_link& link, array_core& a, std::uint32_t tile) {
  std::shared_ptr<std::byte[]> copy(new std::byte[a.bytes_of(tile)]);
  std::byte* to = copy.get();
  for (const auto& row : rows_of(link, a, tile, a.tile_box(tile), false)) to = std::copy(row.begin(), row.end(), to);
  return copy;
}

}  // namespace

// ---- what the log is told -------------------------------------------------------------------------------------------

void placement::put_aside(array_core& a, std::uint32_t tile) {
  const auto needed = log_->must_keep(a.id, tile);
  if (!needed) return;
  auto copy = copy_of(link_, a, tile);
  if (log_->kept(*needed, a.bytes_of(tile))) aside_[key_of(*needed)] = std::move(copy);
}

void placement::drop_unwanted() {
  for (const logic::value& v : log_->take_unwanted()) aside_.erase(key_of(v));
}

// It is about to be handed over; it may be looked at again before it is.
void placement::note_overwriting(task_record& t, memory_space where) {
  if (!log_ || (t.marks & mark_overwrites)) return;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (t.kind == task_kind::transfer ? x.mode == access_mode::write : !changes_home(x, where)) continue;
    t.marks |= mark_overwrites;
    logic::each_tile_of(x, [&](std::uint32_t tile) {
      put_aside(*x.array, tile);
      log_->leaves_home(x.array->id, tile);
    });
  }
  drop_unwanted();  // not before: what is at home is not wanted aside
}

// It has retired. Versions are those after it.
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

// It was handed over, and is placed again: what it was to overwrite may have been begun.
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

// What it has read, as the tiles are before its own writes are accounted for.
std::vector<logic::value> placement::values_read(const task_record& t) const {
  std::vector<logic::value> all;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || x.mode == access_mode::write || x.mode == access_mode::reduce) continue;
    logic::each_tile_of(x, [&](std::uint32_t tile) { all.push_back({x.array->id, tile, version_of(*x.array, tile)}); });
  }
  return all;
}

void placement::note_ran(task_record& t, memory_space where, std::vector<logic::value> reads) {
  if (where == host_space || t.error) return;
  const bool node = is_node(t);
  logic::lineage::call c;
  bool all_whole = true;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || x.mode == access_mode::read) continue;
    if (!logic::is_whole(x)) {
      all_whole = false;
      continue;
    }
    const std::uint32_t version = version_of(*x.array, x.tile);
    if (node)
      c.writes.push_back({{x.array->id, x.tile, version}, x.array->bytes_of(x.tile)});
    else
      log_->overwritten(x.array->id, x.tile, version);
  }
  if (!node || c.writes.empty()) return;
  c.reads = std::move(reads);
  c.what = t.extra ? t.extra->call : nullptr;
  c.cost_ns = t.measured_ns;
  // What it has done to this node's memory must not be done twice.
  c.repeatable = all_whole && c.what && t.kernel->repeat != purity::once;
  for (int i = 0; i < t.access_count; ++i)
    if (array_core* a = t.accesses[i].array) logged_[a->id] = a;
  log_->ran(std::move(c));
  save_some();
}

// Nobody names the array any more; its bytes go.
void placement::forget_in_log(array_core& a) {
  if (!log_) return;
  for (const logic::value& v : log_->must_keep(a.id))
    if (log_->kept(v, a.bytes_of(v.tile))) aside_[key_of(v)] = copy_of(link_, a, v.tile);
  log_->forget(a.id);
  logged_.erase(a.id);
  drop_unwanted();
}

// A host access that reads a tile brings it home, in its place in the order of the program.
void placement::save_some() {
  for (const auto& [id, tile] : log_->to_save(save_bytes)) {
    const auto known = logged_.find(id);
    if (known == logged_.end() || !known->second->keep()) {
      log_->not_saved(id, tile);
      continue;
    }
    to_save_.emplace_back(known->second, tile);
  }
}

// ---- after a loss ---------------------------------------------------------------------------------------------------

// Gives those that nothing can be done about.
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

  // The host's bytes may change as soon as the turn has been left.
  auto copies = std::make_shared<std::map<value_key, std::shared_ptr<std::byte[]>>>();
  const auto fix = [&](logic::remake_plan::source& s) {
    using place = logic::remake_plan::place;
    if (s.where == place::step) return;
    std::shared_ptr<std::byte[]>& copy = (*copies)[key_of(s.what)];
    if (s.where == place::home && !copy) copy = copy_of(link_, *logged_.at(s.what.array), s.what.tile);
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
    number(*t);
    t->executor = e.facts().id;
    note_overwriting(*t, host_space);
    tile_home& home = a.homes->tiles[s.what.tile];
    home.cached.erase(e.facts().space);
    home.dirty_in = no_space;
    home.moving = {t, t->sequence};
    tasks.push_back(t);
  }
  auto repeat = [this, plan = std::move(plan), copies, tasks] {
    const auto kept = [&](const logic::value& v) { return copies->at(key_of(v)).get(); };
    std::vector<remade_value> results;
    std::exception_ptr failed;
    try {
      results = remake(plan, kept, link_);
    } catch (...) {
      failed = std::current_exception();
    }
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      claim(*tasks[i]);
      tasks[i]->error = i < results.size() ? results[i].error : failed;
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
