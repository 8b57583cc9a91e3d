// What this file is for: what the log of calls on nodes is told, what is retained for it, what it brings home.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/lineage_log.hpp"

#include <algorithm>
#include <utility>

#include <troupe/error.hpp>

#include "actors/execution/graph_part.hpp"
#include "actors/execution/reexecution.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/logic/data/view_bytes.hpp"
#include "actors/placement/host_memory.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {

std::uint32_t version_of(const array_core& a, std::uint32_t tile) {
  return a.coherence ? a.coherence->tiles[tile].version.load(std::memory_order_relaxed) : 1;
}

// True if the access changes bytes of host memory when its task runs in space `where`.
bool changes_home(const access& x, memory_space where) {
  return x.array && logic::writes(x) && (where == host_space || !logic::is_whole(x));
}

// Tiles from this size on are kept in part where tasks have read parts of them, and so many boxes at most.
constexpr std::size_t kept_in_part_min = 256u << 10;
constexpr std::size_t boxes_max = 16;

// Ratio of the cost of making tiles to the cost of copying them to this node from which copying is worth it.
constexpr float worth_of_a_link = 10;

// True if all of the tile is overwritten, and the task does not read what was there.
bool replaces_home(const task_record& t, const access& x) {
  if (t.kind == task_kind::transfer) return true;
  if (!logic::is_whole(x) || x.mode != access_mode::write) return false;
  return std::none_of(t.accesses, t.accesses + t.access_count,
                      [&](const access& other) { return &other != &x && other.array == x.array; });
}

}  // namespace

lineage_log::lineage_log(logic::lineage_bounds bounds, runtime_state& rt, const logic::task_graph& graph,
                         const logic::assignment& costs, host_memory* memory)
    : log_(bounds), rt_(rt), graph_(graph), costs_(costs), host_memory_(memory) {}

// ---- what the log is told -------------------------------------------------------------------------------------------

// Returns a packed copy of a tile, from host memory or, if it is being loaded, spilled or not there, from the disk.
std::shared_ptr<std::byte[]> lineage_log::copy_of(array_core& a, std::uint32_t tile) {
  std::shared_ptr<std::byte[]> copy = new_view_bytes(a.bytes_of(tile), a.spec.name);  // a repeated call may read it
  if (host_memory_ && host_memory_->read_from_disk(a, tile, copy.get())) return copy;
  std::byte* to = copy.get();
  for (const auto& row : rows_of(rt_, a, tile, a.tile_box(tile), false)) to = std::copy(row.begin(), row.end(), to);
  return copy;
}

void lineage_log::note_read_box(const array_core& a, std::uint32_t tile, const logic::box4& b) {
  if (a.bytes_of(tile) < kept_in_part_min) return;
  boxes_of_version& r = read_[{a.id, tile}];
  if (const std::uint32_t v = version_of(a, tile); r.version != v) r = {v, {}};
  for (const logic::box4& fresh : logic::without({b}, r.boxes)) r.boxes.push_back(fresh);
  if (r.boxes.size() > boxes_max) r.boxes = {a.tile_box(tile)};
}

// Returns the boxes of a value that have been read; none: not known, or nearly all of it.
logic::box_list lineage_log::boxes_read(const array_core& a, const logic::value& v) const {
  const auto r = read_.find({v.array, v.tile});
  if (r == read_.end() || r->second.version != v.version) return {};
  index_t all = 0;
  for (const logic::box4& b : r->second.boxes) all += b.volume();
  return 2 * all < a.tile_box(v.tile).volume() ? r->second.boxes : logic::box_list{};
}

// Keeps a copy of the host's version of a tile, or of what has been read of it, if the log needs it. `overwritten`:
// nothing else needs the host's bytes, so they are taken instead of copied.
void lineage_log::retain(array_core& a, std::uint32_t tile, bool overwritten) {
  const auto needed = log_.must_keep(a.id, tile);
  if (!needed) return;
  tile_copy copy;
  std::uint64_t bytes = a.bytes_of(tile);
  try {
    if (!host_memory_) copy.boxes = boxes_read(a, *needed);
    if (!copy.boxes.empty()) {
      bytes = copy_boxes(a, tile, copy.boxes, copy);
    } else {
      const bool takes = overwritten && owns_its_bytes(a, tile);
      copy.bytes = takes ? take_host_tile(rt_, a, tile) : copy_of(a, tile);
    }
  } catch (const error& e) {  // the value is lost if its tile is, as if it had not been wanted
    if (e.code() != errc::out_of_memory) throw;
    return;
  }
  if (log_.kept(*needed, bytes)) retained_[key_of(*needed)] = std::move(copy);
}

// Copies boxes of a tile to where they are in a copy of all of it, whose other memory is not touched. Returns how many
// bytes there are.
std::uint64_t lineage_log::copy_boxes(array_core& a, std::uint32_t tile, const logic::box_list& from, tile_copy& to) {
  if (!to.bytes) to.bytes = new_view_bytes(a.bytes_of(tile), a.spec.name);
  const logic::box4 all = a.tile_box(tile);
  const auto stride = packed_strides(all);
  std::uint64_t bytes = 0;
  for (const logic::box4& b : from) {
    raw_view v;
    v.data = to.bytes.get();
    for (int d = 0; d < rank_max; ++d)
      v.data += static_cast<std::size_t>((b.lo[d] - all.lo[d]) * stride[d]) * a.spec.element;
    v.lo = b.lo;
    v.hi = b.hi;
    v.stride = stride;
    const net::pieces to_rows = rows_of(v, a.spec.element);
    std::vector<std::byte> packed;
    for (const auto& row : rows_of(rt_, a, tile, b, false)) packed.insert(packed.end(), row.begin(), row.end());
    copy_into(to_rows, packed.data());
    bytes += packed.size();
  }
  return bytes;
}

// Copies what a node's task, which ends, has read of tiles that tasks here overwrite beside that: the version that it
// has read is not at home any more, but its boxes are until the task has retired. Where they cannot be kept the call
// cannot be repeated.
void lineage_log::keep_read(const task_record& t, logic::lineage::call& c) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || !x.where || x.mode != access_mode::read) continue;
    array_core& a = *x.array;
    logic::each_touched(*x.where, [&](const logic::box4& b) {
      a.each_tile(b, [&](std::uint32_t tile, const logic::box4& all) {
        const logic::value v{a.id, tile, version_of(a, tile)};
        if (a.coherence->tiles[tile].dirty_in != host_space || !log_.is_away(v)) return;
        const std::optional<std::uint64_t> bytes = keep_box(a, v, intersect(all, b));
        if (!bytes) c.repeatable = false;
        if (bytes && *bytes != 0) c.kept.emplace_back(v, *bytes);
      });
    });
  }
}

// Adds a box to the copy of a value. Returns the bytes that this takes, or nothing if the box cannot be kept.
std::optional<std::uint64_t> lineage_log::keep_box(array_core& a, const logic::value& v, const logic::box4& b) {
  const auto [at, is_new] = retained_.try_emplace(key_of(v));
  tile_copy& copy = at->second;
  if (!is_new && copy.boxes.empty()) return 0;  // all of it is there
  const logic::box_list fresh = logic::without(logic::box_list{b}, copy.boxes);
  if (fresh.empty()) return 0;
  std::optional<std::uint64_t> bytes;
  try {
    if (copy.boxes.size() + fresh.size() <= boxes_max) {
      bytes = copy_boxes(a, v.tile, fresh, copy);
      // Memory of a large tile that is not touched takes no room.
      if (const std::uint64_t all = a.bytes_of(v.tile); all < kept_in_part_min) bytes = is_new ? all : 0;
      copy.boxes.insert(copy.boxes.end(), fresh.begin(), fresh.end());
      logic::unite(copy.boxes);
    }
  } catch (const error& e) {  // as in `retain`
    if (e.code() != errc::out_of_memory) throw;
  }
  if (is_new && !bytes) retained_.erase(at);
  return bytes;
}

void lineage_log::drop_unwanted() {
  for (const logic::value& v : log_.take_unwanted()) retained_.erase(key_of(v));
}

void lineage_log::note_overwriting(task_record& t, memory_space where) {
  if (t.marks & mark_overwrites) return;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (t.kind == task_kind::transfer ? x.mode == access_mode::write : !changes_home(x, where)) continue;
    t.marks |= mark_overwrites;
    logic::each_tile_of(x, [&](std::uint32_t tile) {
      retain(*x.array, tile, replaces_home(t, x));
      log_.leaves_home(x.array->id, tile);
    });
  }
  drop_unwanted();  // not before: values at home need not be retained
}

void lineage_log::note_at_home(const task_record& t, memory_space where) {
  if (!(t.marks & mark_overwrites)) return;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (t.kind == task_kind::transfer ? x.mode == access_mode::write : !changes_home(x, where)) continue;
    logic::each_tile_of(x, [&](std::uint32_t tile) {
      if (t.error)
        log_.stays_away(x.array->id, tile);
      else
        log_.came_home(x.array->id, tile, version_of(*x.array, tile));
    });
  }
  drop_unwanted();
}

void lineage_log::note_not_run(task_record& t, memory_space where) {
  if (!(t.marks & mark_overwrites)) return;
  t.marks &= static_cast<std::uint16_t>(~mark_overwrites);
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!changes_home(x, where)) continue;
    logic::each_tile_of(x, [&](std::uint32_t tile) { log_.stays_away(x.array->id, tile); });
  }
  drop_unwanted();
}

// Collects in `ran_` the versions that a task has read, before its own writes are accounted for.
void lineage_log::note_read(const task_record& t) {
  ran_.reads.clear();
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || x.mode == access_mode::write || x.mode == access_mode::reduce) continue;
    logic::each_tile_of(x, [&](std::uint32_t tile) {
      ran_.reads.push_back({x.array->id, tile, version_of(*x.array, tile)});
      if (!x.where) note_read_box(*x.array, tile, x.array->tile_box(tile));
    });
    if (!x.where || x.array->tile_count == 0 || x.array->bytes_of(0) < kept_in_part_min) continue;
    logic::each_touched(*x.where, [&](const logic::box4& b) {
      x.array->each_tile(
          b, [&](std::uint32_t tile, const logic::box4& all) { note_read_box(*x.array, tile, intersect(all, b)); });
    });
  }
}

void lineage_log::note_ran(task_record& t, memory_space where, bool node) {
  if (where == host_space || t.error) return;
  logic::lineage::call& c = ran_;
  c.writes.clear();
  const float worth = node ? worth_of_a_link * static_cast<float>(costs_.slots_of(t.executor)) : 0;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || x.mode == access_mode::read || !logic::is_whole(x)) continue;
    const std::uint32_t version = version_of(*x.array, x.tile);
    const std::uint64_t bytes = x.array->bytes_of(x.tile);
    if (node)
      c.writes.push_back({{x.array->id, x.tile, version},
                          bytes,
                          worth * costs_.transfer_ns(where, host_space, bytes),
                          x.array->spec.replicas > 1});
    else
      log_.overwritten(x.array->id, x.tile, version);
  }
  if (!node || c.writes.empty()) return;
  c.what = t.extra ? t.extra->call : nullptr;
  c.may_be_lost = is_graph_part(t);
  c.cost_ns = c.may_be_lost ? 0 : t.measured_ns;
  c.repeatable = c.what && is_repeatable(t);
  c.kept.clear();
  if (c.repeatable) keep_read(t, c);
  c.executor = costs_.facts()[t.executor].id;
  for (int i = 0; i < t.access_count; ++i)
    if (array_core* a = t.accesses[i].array) logged_[a->id] = a;
  log_.ran(std::move(c));
  if (!c.kept.empty()) drop_unwanted();  // `ran` leaves the lists
  if (t.extra && t.extra->call)
    for (saved_tile& s : std::exchange(static_cast<const repeatable_call*>(t.extra->call.get())->brought, {})) {
      s.version = version_of(*s.array, s.tile);
      take_home(where, s);
    }
}

void lineage_log::forget(array_core& a) {
  for (const logic::value& v : log_.must_keep(a.id)) retain(a, v.tile, true);
  read_.erase(read_.lower_bound({a.id, 0}), read_.upper_bound({a.id, ~std::uint32_t{0}}));
  log_.forget(a.id);
  logged_.erase(a.id);
  drop_unwanted();
}

// ---- versions copied home while nodes go on -------------------------------------------------------------------------

// Returns an array that the log names, with a reference more; null if it has no handle any more: then the log is told.
array_core* lineage_log::kept(std::uint64_t id, std::uint32_t number) {
  const auto known = logged_.find(id);
  if (known != logged_.end() && known->second->keep()) return known->second;
  log_.not_saved(id, number);
  return nullptr;
}

// Replaces the host's version of a tile by one that a node has saved. Drops it if the tile is being transferred
// otherwise, or the log does not need it any more, or under a budget there is no room: a tile that is current elsewhere
// keeps its room, unless it is leaving.
void lineage_log::take_home(memory_space from, saved_tile& s) {
  array_core& a = *s.array;
  coherence_entry& entry = a.coherence->tiles[s.tile];
  const bool has_room = !host_memory_ || host_memory::keeps_room(a, s.tile);
  if (!has_room || entry.dirty_in != from || graph_.alive(entry.moving) || !log_.is_wanted({a.id, s.tile, s.version})) {
    log_.not_saved(a.id, s.tile);
    return;
  }
  retain(a, s.tile, true);
  if (a.spec.adopted) {
    copy_into(rows_of(rt_, a, s.tile, a.tile_box(s.tile), true), s.bytes.get());
  } else {
    exchange_host_tile(rt_, a, s.tile, std::move(s.bytes));
  }
  log_.leaves_home(a.id, s.tile);
  log_.came_home(a.id, s.tile, s.version);
  drop_unwanted();
  if (entry.version.load(std::memory_order_relaxed) == s.version) entry.dirty_in = host_space;
}

void lineage_log::note_joined(std::uint16_t executor) {
  if (joined_.size() <= executor) joined_.resize(executor + 1u);
  ++joined_[executor];
}

void lineage_log::take_home(const executor_facts& e, std::uint64_t times, std::span<saved_tile> all) {
  for (saved_tile& s : all)
    if (e.id < joined_.size() && times == joined_[e.id])
      take_home(e.space, s);
    else
      log_.not_saved(s.array->id, s.tile);
}

// ---- after a loss ---------------------------------------------------------------------------------------------------

lineage_log::repetition lineage_log::reexecute_lost(memory_space space, std::span<const tile_id> lost) {
  repetition r;
  std::vector<logic::value> values;
  std::map<std::pair<std::uint64_t, std::uint32_t>, array_core*> arrays;
  for (const auto& [a, number] : lost) {
    if (a->coherence->tiles[number].dirty_in != space) continue;
    values.push_back({a->id, number, version_of(*a, number)});
    arrays[{a->id, number}] = a;
  }
  if (values.empty()) return r;
  r.plan = log_.reexecute(values);
  for (const auto& h : r.plan.holes) {
    log_.give_up(h.lost.array, h.lost.tile);
    r.lost.emplace_back(arrays.at({h.lost.array, h.lost.tile}), h.lost.tile);
  }
  const auto fix = [&](logic::reexecution_plan::source& s) {
    using origin = logic::reexecution_plan::origin;
    if (s.where == origin::step) return;
    tile_copy& copy = r.copies[key_of(s.what)];
    if (s.where == origin::home && !copy.bytes) copy.bytes = copy_of(*logged_.at(s.what.array), s.what.tile);
    if (s.where == origin::kept && !copy.bytes) copy = retained_.at(key_of(s.what));
    s.where = origin::kept;
  };
  if (r.plan.reexecuted.empty()) return r;
  for (auto& step : r.plan.steps)
    for (auto& s : step.reads) fix(s);
  for (auto& s : r.plan.reexecuted) {
    fix(s);
    r.reexecuted.emplace_back(arrays.at({s.what.array, s.what.tile}), s.what.tile);
  }
  return r;
}

}  // namespace troupe::detail
