// What this file is for: what a task holds in a device's memory while it is there.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "actors/execution/graph_run.hpp"
#include "actors/gpu/boxes.hpp"
#include "actors/gpu/memory.hpp"
#include "actors/logic/data/reduction.hpp"

namespace troupe::detail {

using logic::piece;
using logic::replica;

namespace {
bool is_written(const access& x) { return x.mode == access_mode::write || x.mode == access_mode::update; }
}  // namespace

bool gpu_memory::reserve(gpu_job& j) {
  const task_record& t = *j.task;
  j.device.bind(t);
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array) continue;
    const bool fits = x.where ? reserve_part(j, i) : hold(j, i, *x.array, x.tile, is_written(x), true) != nullptr;
    if (fits) continue;
    let_go(j);
    return false;
  }
  if (reserve_windows(j)) return true;
  let_go(j);
  return false;
}

// Reserves memory for the windows of one call of a graph: they are put together one call after the other. Runs of the
// graph use the same memory, so that their captures stay valid: those that write anything follow one another.
bool gpu_memory::reserve_windows(gpu_job& j) {
  if (j.task->kind == task_kind::graph_run) forget_old_windows();
  const std::span<const std::uint64_t> sizes = windows_of(*j.task);
  if (sizes.empty()) return true;
  const auto graph = std::static_pointer_cast<recorded_graph>(j.task->extra->payload);
  graph_windows& w = windows_[graph.get()];
  if (w.graph.lock() != graph) {
    drop_windows(w);
    w.graph = graph;
  }
  ++w.users;
  j.windows = &w;
  while (w.memory.size() < sizes.size()) {
    const std::uint64_t bytes = sizes[w.memory.size()];
    void* const memory = bytes != 0 ? allocate(lane_in, bytes) : nullptr;
    if (bytes != 0 && !memory) return false;
    w.memory.push_back(memory);
    w.ready = lanes_.promise(lane_in);
  }
  j.route.memory_ready = std::max(j.route.memory_ready, w.ready);
  return true;
}

// Null: no room.
replica* gpu_memory::hold(gpu_job& j, int access, array_core& a, std::uint32_t tile, bool written, bool whole) {
  replica* r = cache_.find(a.id, tile);
  if (!r) {
    replica fresh;
    fresh.bytes = bytes_in(a.tile_box(tile), a);
    fresh.memory = allocate(lane_in, fresh.bytes);
    if (!fresh.memory) return nullptr;
    fresh.array = &a;
    fresh.array_id = a.id;
    fresh.tile = tile;
    fresh.ready = {lane_in, lanes_.promise(lane_in)};
    r = &cache_.add(std::move(fresh));
  }
  ++r->pins;
  cache_.touch(*r);
  j.copies.push_back({r, access, written, whole});
  return r;
}

bool gpu_memory::reserve_part(gpu_job& j, int i) {
  const access& x = j.task->accesses[i];
  gpu_job::part p{};
  p.access = i;
  p.where = x.mode == access_mode::reduce ? x.where->partials->where : logic::view_box(*x.where);
  p.from_tiles = x.mode == access_mode::read && !j.from_host;
  p.goes_out = x.mode != access_mode::read;
  p.bytes = bytes_in(p.where, *x.array);
  const std::size_t first = j.sources.size();
  if (p.bytes != 0 && p.from_tiles && !reserve_sources(j, x, p)) return false;
  // A single piece of a tile that is there is used in place.
  const device_kind kind = device_->facts().kind;
  const bool handle = kind == device_kind::opencl && j.task->kernel->routines[static_cast<std::size_t>(kind)];
  const bool in_place = !handle && p.from_tiles && j.sources.size() == first + 1 && j.sources[first].copy &&
                        j.sources[first].piece.is_plain() && !logic::has_constant_border(*x.where);
  if (p.bytes != 0 && !in_place) {
    p.memory = allocate(lane_in, p.bytes);
    if (!p.memory) return false;
    j.route.memory_ready = lanes_.promise(lane_in);
  }
  j.parts.push_back(p);
  return true;
}

bool gpu_memory::reserve_sources(gpu_job& j, const access& x, gpu_job::part& p) {
  array_core& a = *x.array;
  logic::pieces_of(*x.where, a, pieces_);
  for (const piece& one : pieces_) {
    const replica* there = cache_.find(a.id, one.tile);
    const bool current = there && there->is_current(known_version(a, one.tile));
    replica* from = nullptr;
    const auto part = static_cast<std::uint64_t>(one.from.volume());
    // A border is made from the tile, so it must be there.
    if (current || !one.is_plain() ||
        logic::fetches_whole(part, static_cast<std::uint64_t>(a.tile_box(one.tile).volume()))) {
      from = hold(j, p.access, a, one.tile, false, false);
      if (!from) return false;
    }
    j.sources.push_back({j.parts.size(), one, from});
  }
  return true;
}

void* gpu_memory::scratch(gpu_job& j, std::size_t bytes) {
  void* const memory = allocate(j.route.lane, bytes);
  if (memory) j.for_routine.push_back(memory);
  return memory;
}

void gpu_memory::let_go(gpu_job& j) {
  end_loans(j, j.launched && !j.failure.error);
  for (const gpu_job::held& h : j.copies) {
    replica& r = *h.copy;
    --r.pins;
    if (h.written && j.failure.error && j.launched) {
      if (h.write == 0 || r.write == h.write)
        r.filled = r.dirty = false;  // half written, and nobody will read it
      else
        --r.version;  // overwritten since then, by a task that placement takes for the first
    }
    if (!r.filled && r.pins == 0 && !r.dirty && !r.leaving) drop(r);
  }
  j.copies.clear();
  for (const gpu_job::part& p : j.parts) {
    if (p.memory && device_) device_->deallocate(lane_in, p.memory);
    if (p.staged) j.buffers.give_back(p.staged);
  }
  j.parts.clear();
  j.sources.clear();
  for (void* s : j.for_routine)
    if (device_) device_->deallocate(lane_in, s);
  j.for_routine.clear();
  j.leave_windows();
  j.updates.clear();
}

}  // namespace troupe::detail
