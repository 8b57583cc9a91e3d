// What this file is for: windows that are shown in the memory of their tile, for which only their rim is copied.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include "actors/execution/run_context.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/tile_room.hpp"

namespace troupe::detail {

using logic::box4;
using logic::each_row;
using logic::point4;

namespace {
// A rim may have so many elements for each one of the tile; copying a tile of fewer bytes costs no more than a rim.
constexpr double rim_max = 0.5;
constexpr std::size_t least_bytes = 512;

bool is_worth_room(const array_core& a, const box4& view, const box4& tile) {
  const auto inside = static_cast<double>(tile.volume());
  return static_cast<double>(view.volume()) <= (1 + rim_max) * inside &&
         static_cast<std::size_t>(tile.volume()) * a.spec.element >= least_bytes;
}

// Copies elements that lie apart. The usual sizes are copied by one instruction.
void copy_apart(std::byte* to, index_t to_step, const std::byte* from, index_t from_step, index_t count,
                std::size_t element) {
  const auto each = [&](auto size) {
    for (index_t i = 0; i < count; ++i, to += to_step, from += from_step) std::memcpy(to, from, size);
  };
  switch (element) {
    case 1:
      return each(std::integral_constant<std::size_t, 1>());
    case 2:
      return each(std::integral_constant<std::size_t, 2>());
    case 4:
      return each(std::integral_constant<std::size_t, 4>());
    case 8:
      return each(std::integral_constant<std::size_t, 8>());
    default:
      return each(element);
  }
}
}  // namespace

// Shows a window that contains one tile as a whole in that tile's memory, if it has room for the window's rim; else the
// array's tiles get room when they are overwritten. False: the window has to be copied.
bool run_context::show_in_room(access& x, const box4& b, raw_view& v) {
  array_core& a = *x.array;
  const region& r = *x.where;
  if (!uses_rooms_ || a.tile_count == 1 || a.spec.adopted || has_boxes_of(a)) return false;
  point4 middle{};
  for (int d = 0; d < rank_max; ++d)
    middle[d] = std::clamp(b.lo[d] + (b.hi[d] - b.lo[d]) / 2, r.limit_lo[d], r.limit_hi[d] - 1);
  const std::uint32_t t = a.tile_at(middle);
  const box4 tb = a.tile_box(t);
  if (!b.contains(tb) || !box4{r.limit_lo, r.limit_hi}.contains(tb)) return false;
  const halo wanted = halo::between(b, tb);
  if (std::ranges::any_of(wanted.reach, [](index_t n) { return n > halo::max; })) return false;
  tile_room* const room = a.bytes[t].room.load(std::memory_order_acquire);
  if (!room || !room->reach().covers(wanted)) {
    if (!a.stays_packed.load(std::memory_order_relaxed) && is_worth_room(a, b, tb)) {
      std::uint32_t now = a.halo.load(std::memory_order_relaxed);
      while (!halo::of(now).covers(wanted) &&
             !a.halo.compare_exchange_weak(now, halo::larger(now, wanted).packed(), std::memory_order_relaxed)) {
      }
    }
    return false;
  }
  held_.push_back({&x, nullptr, b, nullptr, false, nullptr});
  if (!room->show(a, r, b, [&] { fill_rim(r, a, b, tb, *room); })) {
    held_.pop_back();
    return false;
  }
  held_.back().room = room;
  v.data = room->element(b.lo);
  v.stride = room->stride();
  return true;
}

// Copies what a window shows beyond its tile into the room around that.
void run_context::fill_rim(const region& r, array_core& a, const box4& view, const box4& tile, tile_room& room) {
  const int last = a.spec.rank - 1;
  // Before and behind the tile, along each dimension but the last: whole rows of the window.
  for (int d = 0; d < last; ++d)
    for (const bool behind : {false, true}) {
      box4 slab = view;
      for (int outer = 0; outer < d; ++outer) {
        slab.lo[outer] = tile.lo[outer];
        slab.hi[outer] = tile.hi[outer];
      }
      (behind ? slab.lo : slab.hi)[d] = (behind ? tile.hi : tile.lo)[d];
      if (slab.empty()) continue;
      each_row(slab, last, [&](const point4& at) { gather_run(r, a, at, slab.size(last), room.element(at)); });
      bytes_ += static_cast<std::uint64_t>(slab.volume()) * a.spec.element;
    }
  if (last == 0) {
    gather_run(r, a, view.lo, tile.lo[0] - view.lo[0], room.element(view.lo));
    point4 behind = view.lo;
    behind[0] = tile.hi[0];
    gather_run(r, a, behind, view.hi[0] - tile.hi[0], room.element(behind));
    bytes_ += static_cast<std::uint64_t>(view.volume() - tile.volume()) * a.spec.element;
    return;
  }
  for (index_t at = view.lo[last]; at < tile.lo[last]; ++at) fill_column(r, a, tile, at, room);
  for (index_t at = tile.hi[last]; at < view.hi[last]; ++at) fill_column(r, a, tile, at, room);
}

// The same for one coordinate of the last dimension, of at least two, beside the rows of the tile.
void run_context::fill_column(const region& r, array_core& a, const box4& tile, index_t at, tile_room& room) {
  const int last = a.spec.rank - 1;
  const std::optional<index_t> source = logic::source_of(r, last, at);
  const auto e = static_cast<index_t>(a.spec.element);
  devices::strides step{};
  const std::byte* from = r.fill.data();
  point4 corner = tile.lo;
  if (source) {
    corner[last] = *source;
    const std::uint32_t t = a.tile_at(corner);
    from = element_at(a, corner);
    step = host_strides(a, t);
  }
  corner[last] = at;
  const int inner = last - 1;
  box4 rows = tile;
  rows.lo[last] = at;
  rows.hi[last] = at + 1;
  const index_t count = rows.size(inner);
  each_row(rows, inner, [&](const point4& p) {
    index_t offset = 0;
    for (int d = 0; d < inner; ++d) offset += (p[d] - tile.lo[d]) * step[d];
    copy_apart(room.element(p), room.stride()[inner] * e, from + offset * e, step[inner] * e, count, a.spec.element);
  });
  bytes_ += static_cast<std::uint64_t>(rows.volume()) * a.spec.element;
}

}  // namespace troupe::detail
