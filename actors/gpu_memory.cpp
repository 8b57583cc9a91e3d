// What this file is for: reserving, copying, assembling; who waits for what.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu_memory.hpp"

#include <algorithm>

#include "actors/host_tiles.hpp"
#include "actors/logic/region.hpp"
#include "actors/protocol/clock.hpp"

namespace troupe::detail {

using logic::box4;
using logic::piece;
using logic::replica;

namespace {

using counts = std::array<index_t, rank_max>;

bool is_written(const access& x) { return x.mode == access_mode::write || x.mode == access_mode::update; }
std::uint32_t known_version(const array_core& a, std::uint32_t tile) {
  return a.homes->tiles[tile].version.load(std::memory_order_relaxed);
}
std::size_t bytes_in(const box4& b, const array_core& a) {
  return static_cast<std::size_t>(b.volume()) * a.spec.element;
}
counts counts_of(const box4& b) {
  counts n;
  for (int d = 0; d < rank_max; ++d) n[d] = b.size(d);
  return n;
}
// Elements from the start of `whole` to the start of `part`.
index_t offset_in(const box4& whole, const counts& stride, const logic::point4& at) {
  index_t offset = 0;
  for (int d = 0; d < rank_max; ++d) offset += (at[d] - whole.lo[d]) * stride[d];
  return offset;
}
// The view's coordinates: those of the (sub-)array that was passed.
void set_box(raw_view& v, const region& r, const box4& b) {
  for (int d = 0; d < rank_max; ++d) {
    v.lo[d] = b.lo[d] - r.limit_lo[d];
    v.hi[d] = std::max(b.hi[d], b.lo[d]) - r.limit_lo[d];
  }
}

}  // namespace

void gpu_memory::use(devices::accelerator* device) { device_ = device; }

std::uint64_t gpu_memory::bytes_of(const task_record& t) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array) continue;
    const box4 b = !x.where                        ? x.array->tile_box(x.tile)
                   : x.mode == access_mode::reduce ? x.where->partials->where
                                                   : logic::view_box(*x.where);
    bytes += bytes_in(b, *x.array);
  }
  return bytes;
}

// ---- reserving ------------------------------------------------------------------------------------------------------

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
  return true;
}

// Null: no room.
replica* gpu_memory::hold(gpu_job& j, int access, array_core& a, std::uint32_t tile, bool written, bool whole) {
  replica* r = cache_.find(a.id, tile);
  if (!r) {
    replica fresh;
    fresh.bytes = bytes_in(a.tile_box(tile), a);
    fresh.memory = device_->allocate(lane_in, fresh.bytes);
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
  p.from_tiles = x.mode == access_mode::read;
  p.goes_out = !p.from_tiles;
  p.bytes = bytes_in(p.where, *x.array);
  const std::size_t first = j.sources.size();
  if (p.bytes != 0 && p.from_tiles && !reserve_sources(j, x, p)) return false;
  // One piece of a tile that is there is used in place.
  const device_kind kind = device_->facts().kind;
  const bool handle = kind == device_kind::opencl && j.task->kernel->routines[static_cast<std::size_t>(kind)];
  const bool in_place = !handle && p.from_tiles && j.sources.size() == first + 1 && j.sources[first].copy &&
                        j.sources[first].piece.is_plain() && !logic::has_constant_border(*x.where);
  if (p.bytes != 0 && !in_place) {
    p.memory = device_->allocate(lane_in, p.bytes);
    if (!p.memory) return false;
    j.memory_ready = lanes_.promise(lane_in);
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

// ---- in -------------------------------------------------------------------------------------------------------------

void gpu_memory::fill_in(gpu_job& j) {
  const task_record& t = *j.task;
  for (const gpu_job::held& h : j.copies) {
    const access& x = t.accesses[h.access];
    const bool needs_contents = !h.whole || x.mode != access_mode::write;
    if (needs_contents && !h.copy->is_current(known_version(*h.copy->array, h.copy->tile))) bring_in(*h.copy);
    if (h.whole) view_tile(j, h);
  }
  bool host_bound = false;
  for (std::size_t i = 0; i < j.parts.size(); ++i) {
    gpu_job::part& p = j.parts[i];
    if (!p.from_tiles) {
      if (!std::exchange(host_bound, true)) j.host.bind(*j.task);
      assemble_from_host(j, p);
    } else if (p.memory || p.bytes == 0 || !view_inside_tile(j, p)) {
      start_assembly(j, i);
    }
  }
  if (!host_bound) j.host.bind(*j.task);
  // What its lane waits for: memory and bytes, whoever wrote what it reads, whoever read what it writes.
  for (const gpu_job::held& h : j.copies) {
    const replica& r = *h.copy;
    lanes_.wait(j.lane, r.ready.lane, r.ready.until);
    if (h.written)
      for (const replica::use& u : r.read_by) lanes_.wait(j.lane, u.lane, u.until);
  }
  if (j.memory_ready != 0) lanes_.wait(j.lane, lane_in, j.memory_ready);
  finish_assembly(j);
}

void gpu_memory::bring_in(replica& r) {
  array_core& a = *r.array;
  const box4 b = a.tile_box(r.tile);
  lanes_.wait(lane_in, r.ready.lane, r.ready.until);
  for (const replica::use& u : r.read_by) lanes_.wait(lane_in, u.lane, u.until);
  device_->copy_in(lane_in, {r.memory, 0}, packed_strides(b), host_tile(link_, a, r.tile, false), host_strides(a, b),
                   counts_of(b), a.spec.element);
  note_arrival(r.bytes);
  r.filled = true;
  r.version = known_version(a, r.tile);
  r.note_write({lane_in, lanes_.promise(lane_in)});
}

void gpu_memory::note_arrival(std::uint64_t bytes) {
  count(bytes);
  arriving_.push_back({lanes_.promise(lane_in), bytes, ticks()});
}

void gpu_memory::view_tile(gpu_job& j, const gpu_job::held& h) {
  const access& x = j.task->accesses[h.access];
  const array_core& a = *x.array;
  const box4 b = a.tile_box(x.tile);
  raw_view v;
  v.name = a.spec.name.c_str();
  v.data = static_cast<std::byte*>(h.copy->memory);
  v.lo = b.lo;
  v.hi = b.hi;
  v.stride = packed_strides(b);
  if (x.worker != 0)  // a sub-array that is exactly this tile: coordinates start at 0
    for (int d = 0; d < rank_max; ++d) {
      v.hi[d] -= v.lo[d];
      v.lo[d] = 0;
    }
  j.device.set_view(h.access, v);
}

// True if the part is one piece of a tile, used where it is.
bool gpu_memory::view_inside_tile(gpu_job& j, const gpu_job::part& p) {
  const std::size_t index = static_cast<std::size_t>(&p - j.parts.data());
  const auto s = std::find_if(j.sources.begin(), j.sources.end(), [&](const auto& x) { return x.part == index; });
  if (s == j.sources.end()) return false;
  const access& x = j.task->accesses[p.access];
  const box4 b = x.array->tile_box(s->piece.tile);
  raw_view v;
  v.name = x.array->spec.name.c_str();
  v.data = static_cast<std::byte*>(s->copy->memory);
  v.stride = packed_strides(b);
  set_box(v, *x.where, p.where);
  const index_t offset = offset_in(b, v.stride, s->piece.from.lo);
  if (j.task->kernel->routines[static_cast<std::size_t>(device_->facts().kind)]) {  // it has the pointer only
    v.data += static_cast<std::size_t>(offset) * x.array->spec.element;
    j.device.set_view(p.access, v);
  } else {
    j.device.set_view(p.access, v, offset);
  }
  return true;
}

void gpu_memory::assemble_from_host(gpu_job& j, gpu_job::part& p) {
  const access& x = j.task->accesses[p.access];
  p.host = j.host.view_of(p.access);
  raw_view v = p.host;
  v.data = static_cast<std::byte*>(p.memory);
  v.stride = packed_strides(p.where);
  j.device.set_view(p.access, v);
  if (!p.memory || x.mode == access_mode::write) return;
  device_->copy_in(lane_in, {p.memory, 0}, v.stride, p.host.data, p.host.stride, counts_of(p.where),
                   x.array->spec.element);
  note_arrival(p.bytes);
  j.memory_ready = lanes_.promise(lane_in);
}

// The view, the border's constant, and the pieces that come from the host.
void gpu_memory::start_assembly(gpu_job& j, std::size_t index) {
  const gpu_job::part& p = j.parts[index];
  const access& x = j.task->accesses[p.access];
  array_core& a = *x.array;
  raw_view v;
  v.name = a.spec.name.c_str();
  v.data = static_cast<std::byte*>(p.memory);
  v.stride = packed_strides(p.where);
  set_box(v, *x.where, p.where);
  j.device.set_view(p.access, v);
  if (!p.memory) return;
  if (logic::has_constant_border(*x.where))
    device_->fill(lane_in, {p.memory, 0}, x.where->fill.data(), a.spec.element,
                  static_cast<std::size_t>(p.where.volume()));
  for (const gpu_job::source& s : j.sources) {
    if (s.part != index || s.copy) continue;
    const box4 b = a.tile_box(s.piece.tile);
    const counts from_stride = host_strides(a, b);
    const std::byte* from = host_tile(link_, a, s.piece.tile, false) +
                            static_cast<std::size_t>(offset_in(b, from_stride, s.piece.from.lo)) * a.spec.element;
    const auto to = static_cast<std::size_t>(offset_in(p.where, v.stride, s.piece.to.lo)) * a.spec.element;
    device_->copy_in(lane_in, {p.memory, to}, v.stride, from, from_stride, counts_of(s.piece.to), a.spec.element);
    note_arrival(bytes_in(s.piece.to, a));
  }
  j.memory_ready = lanes_.promise(lane_in);
}

// On the task's own lane: what comes from tiles that are there.
void gpu_memory::finish_assembly(gpu_job& j) {
  for (const gpu_job::source& s : j.sources) {
    const gpu_job::part& p = j.parts[s.part];
    if (!s.copy || !p.memory) continue;
    const array_core& a = *s.copy->array;
    if (!s.piece.is_plain()) {
      gather(j, p, s);
      continue;
    }
    const counts to_stride = packed_strides(p.where);
    const box4 b = a.tile_box(s.piece.tile);
    const counts from_stride = packed_strides(b);
    const auto to = static_cast<std::size_t>(offset_in(p.where, to_stride, s.piece.to.lo)) * a.spec.element;
    const auto from = static_cast<std::size_t>(offset_in(b, from_stride, s.piece.from.lo)) * a.spec.element;
    device_->copy(j.lane, {p.memory, to}, to_stride, {s.copy->memory, from}, from_stride, counts_of(s.piece.to),
                  a.spec.element);
  }
}

void gpu_memory::gather(gpu_job& j, const gpu_job::part& p, const gpu_job::source& s) {
  struct shape {  // as devices/kernels declares it
    std::array<std::int64_t, rank_max> lo, hi, stride;
    std::int64_t offset;
  };
  const array_core& a = *s.copy->array;
  const box4 tile = a.tile_box(s.piece.tile);
  shape from{}, to{};
  std::array<std::uint32_t, 3> items{1, 1, 1};
  from.stride = packed_strides(tile);
  to.stride = packed_strides(p.where);
  for (int d = 0; d < rank_max; ++d) {
    from.lo[d] = s.piece.from.lo[d];
    from.hi[d] = s.piece.from.hi[d];
    to.lo[d] = s.piece.to.lo[d] - s.piece.shift[d];
    to.hi[d] = s.piece.to.hi[d] - s.piece.shift[d];
    auto& n = items[static_cast<std::size_t>(std::min(rank_max - 1 - d, 2))];
    n *= static_cast<std::uint32_t>(to.hi[d] - to.lo[d]);
  }
  from.offset = offset_in(tile, from.stride, s.piece.from.lo);
  to.offset = offset_in(p.where, to.stride, s.piece.to.lo);
  std::size_t word = 8;
  while (a.spec.element % word != 0) word /= 2;
  const auto words = static_cast<std::int64_t>(a.spec.element / word);
  items[0] *= static_cast<std::uint32_t>(words);
  const std::string entry = "gather_" + std::to_string(word);
  const devices::kernel_id kernel = device_->load({"gather", gather_, entry});
  const auto by_value = [](const auto& v) {
    return devices::kernel_argument{false, {}, std::as_bytes(std::span(&v, 1))};
  };
  const std::array<devices::kernel_argument, 5> arguments{
      {{true, {s.copy->memory, 0}, {}}, by_value(from), {true, {p.memory, 0}, {}}, by_value(to), by_value(words)}};
  device_->launch(j.lane, kernel, {items, {32, 4, 1}}, arguments);
}

void* gpu_memory::scratch(gpu_job& j, std::size_t bytes) {
  void* const memory = device_->allocate(j.lane, bytes);
  if (memory) j.for_routine.push_back(memory);
  return memory;
}

// ---- out ------------------------------------------------------------------------------------------------------------

void gpu_memory::note_launched(gpu_job& j) {
  const replica::use here{j.compute, lanes_.promise(j.compute)};
  for (const gpu_job::held& h : j.copies) {
    replica& r = *h.copy;
    if (!h.written) {
      r.note_read(here);
      continue;
    }
    const std::uint32_t known = known_version(*r.array, r.tile);
    r.version = (r.is_current(known) ? r.version : known) + 1;
    r.filled = true;
    r.dirty = true;
    r.note_write(here);
  }
  j.launched = true;
}

bool gpu_memory::send_out(gpu_job& j) {
  bool any = false;
  for (gpu_job::part& p : j.parts) {
    if (!p.goes_out || !p.memory) continue;
    const access& x = j.task->accesses[p.access];
    if (!any) lanes_.wait(lane_out, j.lane, lanes_.promise(j.lane));
    any = true;
    if (x.mode != access_mode::write) p.staged = j.buffers.take(p.bytes);
    const counts packed = packed_strides(p.where);
    if (p.staged)
      device_->copy_out(lane_out, p.staged, packed, {p.memory, 0}, packed, counts_of(p.where), x.array->spec.element);
    else
      device_->copy_out(lane_out, p.host.data, p.host.stride, {p.memory, 0}, packed, counts_of(p.where),
                        x.array->spec.element);
    count(p.bytes);
  }
  return any;
}

void gpu_memory::put_in_place(gpu_job& j) {
  for (const gpu_job::part& p : j.parts)
    if (p.staged)
      link_.host->copy(p.host.data, p.host.stride, p.staged, packed_strides(p.where), counts_of(p.where),
                       j.task->accesses[p.access].array->spec.element);
}

void gpu_memory::let_go(gpu_job& j) {
  for (const gpu_job::held& h : j.copies) {
    replica& r = *h.copy;
    --r.pins;
    if (h.written && j.error && j.launched) r.filled = r.dirty = false;  // half written, and nobody will read it
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
}

// ---- copies ---------------------------------------------------------------------------------------------------------

replica* gpu_memory::find(const array_core& a, std::uint32_t tile) { return cache_.find(a.id, tile); }

namespace {
// What placement does not know of yet must stay: the next task that is enqueued finds its bytes here only.
bool is_accounted(const replica& r) {
  return !r.filled || static_cast<std::int32_t>(r.version - known_version(*r.array, r.tile)) <= 0;
}
}  // namespace

replica* gpu_memory::victim() { return cache_.victim(is_accounted); }

bool gpu_memory::has_unaccounted() const {
  bool any = false;
  cache_.each([&](const replica& r) { any = any || !is_accounted(r); });
  return any;
}

void gpu_memory::drop(const replica& r) {
  if (device_) device_->deallocate(lane_in, r.memory);
  cache_.erase(r);
}

void gpu_memory::send_home(replica& r, gpu_job& j) {
  array_core& a = *r.array;
  const box4 b = a.tile_box(r.tile);
  std::byte* to = host_tile(link_, a, r.tile, true);
  lanes_.wait(lane_out, r.ready.lane, r.ready.until);
  device_->copy_out(lane_out, to, host_strides(a, b), {r.memory, 0}, packed_strides(b), counts_of(b), a.spec.element);
  count(r.bytes);
  j.leaving = &r;
  j.leaving_version = r.version;
  j.lane = lane_out;
  j.end = lanes_.promise(lane_out);
  r.leaving = true;
  r.note_read({lane_out, j.end});
}

void gpu_memory::note_sent_home(gpu_job& j) {
  replica& r = *j.leaving;
  r.leaving = false;
  if (r.version == j.leaving_version) r.dirty = false;  // else written again meanwhile
  j.leaving = nullptr;
}

void gpu_memory::forget_all() {
  cache_.each([&](const replica& r) { cache_.erase(r); });
  arriving_.clear();
}

}  // namespace troupe::detail
