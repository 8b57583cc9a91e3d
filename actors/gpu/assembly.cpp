// What this file is for: boxes of several tiles, put together in a device's memory from tiles and the host's copies.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "actors/gpu/boxes.hpp"
#include "actors/gpu/memory.hpp"
#include "actors/logic/data/home_box.hpp"
#include "actors/memory/host_tiles.hpp"
#include "devices/gather.hpp"

namespace troupe::detail {

using logic::box4;

namespace {

// The view's coordinates: those of the (sub-)array that was passed.
void set_box(raw_view& v, const region& r, const box4& b) {
  for (int d = 0; d < rank_max; ++d) {
    v.lo[d] = b.lo[d] - r.limit_lo[d];
    v.hi[d] = std::max(b.hi[d], b.lo[d]) - r.limit_lo[d];
  }
}

}  // namespace

// True if the part is one piece of a tile, used where it is.
bool gpu_memory::view_inside_tile(gpu_job& j, const gpu_job::part& p) {
  const std::size_t index = static_cast<std::size_t>(&p - j.parts.data());
  const auto s = std::find_if(j.sources.begin(), j.sources.end(), [&](const auto& x) { return x.part == index; });
  if (s == j.sources.end()) return false;
  view_in_place(*j.task, p.access, s->piece, *s->copy, j.device);
  return true;
}

void gpu_memory::view_in_place(const task_record& t, int number, const logic::piece& p, const logic::replica& copy,
                               gpu_context& to) {
  const access& x = t.accesses[number];
  const box4 b = x.array->tile_box(p.tile);
  raw_view v;
  v.name = x.array->spec.name.c_str();
  v.data = static_cast<std::byte*>(copy.memory);
  v.stride = packed_strides(b);
  set_box(v, *x.where, logic::view_box(*x.where));
  const index_t offset = offset_in(b, v.stride, p.from.lo);
  if (t.kernel->routines[static_cast<std::size_t>(device_->facts().kind)]) {  // it has the pointer only
    v.data += static_cast<std::size_t>(offset) * x.array->spec.element;
    to.set_view(number, v);
  } else {
    to.set_view(number, v, offset);
  }
}

// Puts together what a call of a graph reads, from tiles that are all there, in memory that calls before it have used:
// the lane keeps them in order. One piece of a tile is used where it is, as is all that the call changes.
void gpu_memory::show_window(const task_record& call, int number, void* memory, int lane, gpu_context& to) {
  const access& x = call.accesses[number];
  array_core& a = *x.array;
  const box4 where = logic::view_box(*x.where);
  logic::pieces_of(*x.where, a, pieces_);
  if (logic::is_in_place(*x.where, pieces_))
    return view_in_place(call, number, pieces_[0], *cache_.find(a.id, pieces_[0].tile), to);
  raw_view v;
  v.name = a.spec.name.c_str();
  v.data = static_cast<std::byte*>(memory);
  v.stride = packed_strides(where);
  set_box(v, *x.where, where);
  to.set_view(number, v);
  if (where.volume() == 0) return;
  if (logic::has_constant_border(*x.where))
    device_->fill(lane, {memory, 0}, x.where->fill.data(), a.spec.element, static_cast<std::size_t>(where.volume()));
  to_gather_.clear();
  for (const logic::piece& p : pieces_) to_gather_.push_back(gathered(where, p, *cache_.find(a.id, p.tile)));
  if (!to_gather_.empty())
    devices::gather(*device_, lane, kernels_.gather, kernels_.gathers, to_gather_, {memory, 0}, a.spec.element);
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
  note_arrival(host_space, p.bytes);
  j.route.memory_ready = lanes_.promise(lane_in);
}

namespace {
// Returns the box, with the piece in it, that the task was given in place of the host's tile, or null.
const home_box* box_of(const task_record& t, const array_core& a, const logic::piece& p) {
  if (!t.extra) return nullptr;
  for (const auto& b : t.extra->home_boxes)
    if (b->array == &a && b->tile == p.tile && b->where.contains(p.from)) return b.get();
  return nullptr;
}
}  // namespace

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
    const auto to = static_cast<std::size_t>(offset_in(p.where, v.stride, s.piece.to.lo)) * a.spec.element;
    if (const auto loan = loan_of(j, a, s.piece.tile)) {
      copy_lent(*loan, {p.memory, to}, v.stride, s.piece.from);
      continue;
    }
    const home_box* const box = box_of(*j.task, a, s.piece);
    const box4 b = box ? box->where : a.tile_box(s.piece.tile);
    const counts from_stride = box ? packed_strides(b) : host_strides(a, s.piece.tile);
    const std::byte* from = (box ? box->bytes.get() : host_tile(rt_, a, s.piece.tile, false)) +
                            static_cast<std::size_t>(offset_in(b, from_stride, s.piece.from.lo)) * a.spec.element;
    device_->copy_in(lane_in, {p.memory, to}, v.stride, from, from_stride, counts_of(s.piece.to), a.spec.element);
    note_arrival(host_space, bytes_in(s.piece.to, a));
  }
  j.route.memory_ready = lanes_.promise(lane_in);
}

// On the task's own lane: what comes from tiles that are there.
void gpu_memory::finish_assembly(gpu_job& j) {
  for (auto s = j.sources.begin(); s != j.sources.end();) {
    const gpu_job::part& p = j.parts[s->part];
    to_gather_.clear();
    for (const std::size_t part = s->part; s != j.sources.end() && s->part == part; ++s)
      if (s->copy && p.memory) to_gather_.push_back(gathered(p.where, s->piece, *s->copy));
    if (!to_gather_.empty())
      devices::gather(*device_, j.route.lane, kernels_.gather, kernels_.gathers, to_gather_, {p.memory, 0},
                      j.task->accesses[p.access].array->spec.element);
  }
}

devices::gather_piece gpu_memory::gathered(const box4& whole, const logic::piece& p, const logic::replica& copy) {
  const box4 tile = copy.array->tile_box(p.tile);
  devices::gather_side from{p.from.lo, p.from.hi, packed_strides(tile)};
  devices::gather_side to{p.to.lo, p.to.hi, packed_strides(whole)};
  from.offset = offset_in(tile, from.stride, p.from.lo);
  to.offset = offset_in(whole, to.stride, p.to.lo);
  for (int d = 0; d < rank_max; ++d) {
    to.lo[d] -= p.shift[d];
    to.hi[d] -= p.shift[d];
  }
  return {from, {copy.memory, 0}, to};
}

}  // namespace troupe::detail
