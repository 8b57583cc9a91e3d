// What this file is for: intervals per dimension, and their products.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/assembly.hpp"

#include <algorithm>

#include "actors/logic/data/region.hpp"

namespace troupe::logic {

namespace {

struct interval {
  index_t to_lo, to_hi, from_lo, from_hi, shift, tile;
};

// Appends the interval [lo, hi), which lies inside the array, cut at tile borders; in the view, its elements are
// `shift` further.
void split_by_tile(std::vector<interval>& out, index_t lo, index_t hi, index_t shift, index_t tile) {
  while (lo < hi) {
    const index_t t = lo / tile, end = std::min(hi, (t + 1) * tile);
    out.push_back({lo + shift, end + shift, lo, end, shift, t});
    lo = end;
  }
}

void intervals_of(const detail::region& r, const box4& view, int d, index_t tile, std::vector<interval>& out) {
  out.clear();
  const index_t lo = view.lo[d], hi = view.hi[d], first = r.limit_lo[d], end = r.limit_hi[d], n = end - first;
  if (r.edge == border::wrap) {
    for (index_t at = lo; at < hi;) {
      const index_t from = first + ((at - first) % n + n) % n, length = std::min(hi - at, end - from);
      split_by_tile(out, from, from + length, at - from, tile);
      at += length;
    }
    return;
  }
  split_by_tile(out, std::max(lo, first), std::min(hi, end), 0, tile);
  if (r.edge != border::clamp) return;
  if (out.empty()) {  // the interval lies entirely beyond an edge
    const index_t nearest = lo < first ? first : end - 1;
    out.push_back({lo, hi, nearest, nearest + 1, 0, nearest / tile});
    return;
  }
  out.front().to_lo = lo;
  out.back().to_hi = hi;
}

}  // namespace

void pieces_of(const detail::region& r, const detail::array_core& a, std::vector<piece>& out) {
  out.clear();
  const box4 view = view_box(r);
  if (view.empty()) return;
  std::vector<interval> along[rank_max];
  for (int d = 0; d < rank_max; ++d) {
    intervals_of(r, view, d, a.spec.tile[d], along[d]);
    if (along[d].empty()) return;
  }
  std::size_t at[rank_max] = {};
  for (;;) {
    piece p;
    index_t tile = 0;
    for (int d = 0; d < rank_max; ++d) {
      const interval& i = along[d][at[d]];
      p.to.lo[d] = i.to_lo;
      p.to.hi[d] = i.to_hi;
      p.from.lo[d] = i.from_lo;
      p.from.hi[d] = i.from_hi;
      p.shift[d] = i.shift;
      tile = tile * a.grid[d] + i.tile;
    }
    p.tile = static_cast<std::uint32_t>(tile);
    out.push_back(p);
    int d = rank_max - 1;
    while (d >= 0 && ++at[d] == along[d].size()) at[d--] = 0;
    if (d < 0) return;
  }
}

bool is_in_place(const detail::region& r, std::span<const piece> all) {
  return all.size() == 1 && all[0].is_plain() && !has_constant_border(r);
}

bool has_constant_border(const detail::region& r) {
  return r.edge == border::fill && !box4{r.limit_lo, r.limit_hi}.contains(box4{r.lo, r.hi});
}

}  // namespace troupe::logic
