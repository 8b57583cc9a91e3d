// What this file is for: elements of arrays in host memory: where they are, and copies of boxes with their borders.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <optional>

#include "actors/execution/run_context.hpp"
#include "actors/logic/data/home_box.hpp"
#include "actors/memory/contiguous_tiles.hpp"
#include "actors/memory/host_tiles.hpp"

namespace troupe::detail {

using logic::box4;
using logic::each_row;
using logic::point4;

// ---- parts of tiles that are elsewhere ------------------------------------------------------------------------------

namespace {
bool is_inside(const point4& p, const box4& b) {
  for (int d = 0; d < rank_max; ++d)
    if (p[d] < b.lo[d] || p[d] >= b.hi[d]) return false;
  return true;
}
}  // namespace

// Returns the bytes from the start of a box to the element at `p`.
std::size_t run_context::bytes_to(const home_box& box, const point4& p) {
  const auto stride = packed_strides(box.where);
  index_t offset = 0;
  for (int d = 0; d < rank_max; ++d) offset += (p[d] - box.where.lo[d]) * stride[d];
  return static_cast<std::size_t>(offset) * box.array->spec.element;
}

// True if the task, or the run that it is a call of, has been given parts of the array's tiles, in place of these.
bool run_context::has_boxes_of(const array_core& a) const {
  if (!ordered_task().extra) return false;
  const auto& all = ordered_task().extra->home_boxes;
  return std::ranges::any_of(all, [&](const auto& b) { return b->array == &a; });
}

// Returns the box that has been given for that element of a tile, or null: then the host's tile is current. Of one tile
// either all elements that are read lie in boxes, or none.
const home_box* run_context::box_at(const array_core& a, std::uint32_t tile, const point4& p) const {
  if (!ordered_task().extra) return nullptr;
  for (const auto& b : ordered_task().extra->home_boxes)
    if (b->array == &a && b->tile == tile && is_inside(p, b->where)) return b.get();
  return nullptr;
}

// ---- elements -------------------------------------------------------------------------------------------------------

std::byte* run_context::tile(array_core& a, std::uint32_t t, bool overwritten) {
  return host_tile(rt_, a, t, overwritten);
}

// True if the tiles that a box touches lie one behind the other, so that it can be shown where they are. Tiles without
// bytes get some.
bool run_context::are_in_place(array_core& a, const box4& b, bool overwritten) {
  if (a.places.load(std::memory_order_relaxed) == placing::never) return false;
  point4 end = b.hi;
  for (index_t& n : end) --n;
  const std::uint32_t last = a.tile_at(end);
  for (std::uint32_t t = a.tile_at(b.lo); t <= last; ++t) {
    const std::byte* bytes = a.bytes[t].data.load(std::memory_order_acquire);
    if (!bytes) bytes = tile(a, t, overwritten && b.contains(a.tile_box(t)));
    if (is_in_place(a, t, bytes)) continue;
    a.miss_places();
    return false;
  }
  return true;
}

const std::byte* run_context::element_at(array_core& a, const point4& p) {
  const std::uint32_t t = a.tile_at(p);
  if (const home_box* const box = box_at(a, t, p)) return box->bytes.get() + bytes_to(*box, p);
  const box4 tb = a.tile_box(t);
  return element_at(a, t, tb, host_strides(a, t), p);
}

std::byte* run_context::element_at(array_core& a, std::uint32_t t, const box4& tb, const devices::strides& stride,
                                   const point4& p) {
  index_t offset = 0;
  for (int d = 0; d < rank_max; ++d) offset += (p[d] - tb.lo[d]) * stride[d];
  return tile(a, t, false) + static_cast<std::size_t>(offset) * a.spec.element;
}

// ---- assembling -----------------------------------------------------------------------------------------------------

void run_context::gather(const region& r, array_core& a, const box4& view, std::byte* to) {
  const int last = a.spec.rank - 1;
  const std::size_t run = static_cast<std::size_t>(view.size(last)) * a.spec.element;
  each_row(view, last, [&](const point4& at) {
    gather_run(r, a, at, view.size(last), to);
    to += run;
  });
  bytes_ += static_cast<std::uint64_t>(view.volume()) * a.spec.element;
}

// Copies one run along the array's last dimension, borders included.
void run_context::gather_run(const region& r, array_core& a, point4 at, index_t count, std::byte* to) {
  const int last = a.spec.rank - 1;
  const std::size_t e = a.spec.element;
  for (int d = 0; d < last; ++d) {
    const std::optional<index_t> source = logic::source_of(r, d, at[d]);
    if (!source) {
      host_.fill(to, r.fill.data(), e, static_cast<std::size_t>(count));
      return;
    }
    at[d] = *source;
  }
  const index_t lo = r.limit_lo[last], hi = r.limit_hi[last], n = hi - lo;
  const index_t end = at[last] + count;
  for (index_t i = at[last]; i < end;) {
    if (i >= lo && i < hi) {
      const index_t length = std::min(end, hi) - i;
      to = copy_inside(a, at, i, length, to);
      i += length;
    } else if (r.edge != border::fill && r.edge != border::clamp) {  // the array repeats
      const index_t source = lo + ((i - lo) % n + n) % n, length = std::min(end - i, hi - source);
      to = copy_inside(a, at, source, length, to);
      i += length;
    } else {
      const index_t until = i < lo ? std::min(end, lo) : end;
      point4 edge = at;
      edge[last] = i < lo ? lo : hi - 1;
      host_.fill(to, r.edge == border::fill ? r.fill.data() : element_at(a, edge), e,
                 static_cast<std::size_t>(until - i));
      to += static_cast<std::size_t>(until - i) * e;
      i = until;
    }
  }
}

// Copies elements along the last dimension from coordinate `source` of it on, tile by tile; returns where they end.
std::byte* run_context::copy_inside(array_core& a, point4 at, index_t source, index_t length, std::byte* to) {
  const int last = a.spec.rank - 1;
  while (length > 0) {
    at[last] = source;
    const std::uint32_t t = a.tile_at(at);
    const box4 tb = a.tile_box(t);
    const home_box* const box = box_at(a, t, at);
    const index_t here = std::min(length, (box ? box->where : tb).hi[last] - source);
    const std::size_t bytes = static_cast<std::size_t>(here) * a.spec.element;
    std::memcpy(to, box ? box->bytes.get() + bytes_to(*box, at) : element_at(a, t, tb, host_strides(a, t), at), bytes);
    to += bytes;
    source += here;
    length -= here;
  }
  return to;
}

void run_context::scatter(array_core& a, const box4& view, const std::byte* from) {
  std::array<index_t, rank_max> fs;
  index_t step = 1;
  for (int d = rank_max - 1; d >= 0; --d) {
    fs[d] = step;
    step *= view.size(d);
  }
  a.each_tile(view, [&](std::uint32_t t, const box4& tb) {
    const box4 part = intersect(view, tb);
    const auto ts = host_strides(a, t);
    index_t to_offset = 0, from_offset = 0;
    std::array<index_t, rank_max> count;
    for (int d = 0; d < rank_max; ++d) {
      to_offset += (part.lo[d] - tb.lo[d]) * ts[d];
      from_offset += (part.lo[d] - view.lo[d]) * fs[d];
      count[d] = part.size(d);
    }
    host_.copy(tile(a, t, part == tb) + static_cast<std::size_t>(to_offset) * a.spec.element, ts,
               from + static_cast<std::size_t>(from_offset) * a.spec.element, fs, count, a.spec.element);
  });
  bytes_ += static_cast<std::uint64_t>(view.volume()) * a.spec.element;
}

}  // namespace troupe::detail
