// What this file is for: the layout of a tile with room around it, and which window is shown there.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/tile_room.hpp"

#include <algorithm>

#include "actors/memory/host_tiles.hpp"
#include "actors/memory/runtime_state.hpp"

namespace troupe::detail {

using logic::box4;
using logic::point4;

halo halo::between(const box4& view, const box4& tile) {
  halo h;
  for (int d = 0; d < rank_max; ++d)
    h.reach[static_cast<std::size_t>(d)] = std::max(tile.lo[d] - view.lo[d], view.hi[d] - tile.hi[d]);
  return h;
}

halo halo::larger(std::uint32_t packed, const halo& other) {
  halo h = of(packed);
  for (std::size_t d = 0; d < rank_max; ++d) h.reach[d] = std::max(h.reach[d], other.reach[d]);
  return h;
}

bool halo::covers(const halo& other) const {
  for (std::size_t d = 0; d < rank_max; ++d)
    if (reach[d] < other.reach[d]) return false;
  return true;
}

tile_room::tile_room(runtime_state& rt, const array_core& a, const box4& tile, const halo& reach)
    : rt_(rt), element_(a.spec.element), tile_(tile), reach_(reach) {
  const auto e = static_cast<index_t>(element_);
  const int last = a.spec.rank - 1;
  index_t step = 1, before = 0;
  for (int d = rank_max - 1; d >= 0; --d) {
    stride_[d] = step;
    before += reach_.reach[static_cast<std::size_t>(d)] * step;
    step *= tile.size(d) + 2 * reach_.reach[static_cast<std::size_t>(d)];
    // Rows begin like the tile, where that takes little: the same columns of rows lie on cache lines of their own.
    const index_t row = step * e, line = element_align_max, up = (row + line - 1) / line * line;
    if (d == last && last > 0 && up % e == 0 && 8 * (up - row) <= row) step = up / e;
  }
  // The tile itself begins as all tiles do.
  const auto lead = static_cast<std::size_t>(before * e);
  const std::size_t slack = (element_align_max - lead % element_align_max) % element_align_max;
  bytes_ = slack + static_cast<std::size_t>(step * e);
  memory_ = new_tile_bytes(rt, bytes_);
  data_ = memory_ + slack + lead;
}

tile_room::~tile_room() { give_back_bytes(rt_, memory_, bytes_); }

std::byte* tile_room::element(const point4& p) const {
  index_t offset = 0;
  for (int d = 0; d < rank_max; ++d) offset += (p[d] - tile_.lo[d]) * stride_[d];
  return data_ + offset * static_cast<index_t>(element_);
}

bool tile_room::shows(const array_core& a, const region& r, const box4& view) const {
  return &a == of_ && view == view_ && limit_ == box4{r.limit_lo, r.limit_hi} && r.edge == edge_ &&
         (r.edge != border::fill || r.fill == constant_);
}

void tile_room::note(const array_core& a, const region& r, const box4& view) {
  of_ = &a;
  view_ = view;
  limit_ = {r.limit_lo, r.limit_hi};
  edge_ = r.edge;
  constant_ = r.fill;
}

}  // namespace troupe::detail
