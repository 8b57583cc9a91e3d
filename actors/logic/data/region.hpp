// What this file is for: elements that a region touches: boxes inside the array, pieces of a view with its border.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <optional>

#include <troupe/detail/task.hpp>

#include "actors/logic/data/array_core.hpp"

namespace troupe::logic {

/// Returns the view's box, clipped where the border rule says so.
box4 view_box(const detail::region& r);

/// Calls `f(box)` for each box inside the limits that the region reads. Boxes are disjoint; there is only one unless
/// the border wraps.
template <class F>
void each_touched(const detail::region& r, F&& f) {
  box4 limit{r.limit_lo, r.limit_hi};
  box4 inside = intersect(box4{r.lo, r.hi}, limit);
  if (r.edge != border::wrap) {
    if (r.edge == border::clamp && inside.empty() && !box4{r.lo, r.hi}.empty()) {
      // A region entirely beyond an edge reads the nearest elements.
      for (int d = 0; d < rank_max; ++d) {
        inside.lo[d] = std::clamp(r.lo[d], limit.lo[d], limit.hi[d] - 1);
        inside.hi[d] = std::clamp(r.hi[d], inside.lo[d] + 1, limit.hi[d]);
      }
    }
    if (!inside.empty()) f(inside);
    return;
  }
  // The interval of each dimension, modulo the extent, is one interval or two.
  index_t lo[rank_max][2], hi[rank_max][2];
  int parts[rank_max];
  for (int d = 0; d < rank_max; ++d) {
    const index_t n = limit.hi[d] - limit.lo[d];
    const index_t size = r.hi[d] - r.lo[d];
    if (size >= n) {
      parts[d] = 1;
      lo[d][0] = limit.lo[d];
      hi[d][0] = limit.hi[d];
      continue;
    }
    const index_t start = ((r.lo[d] - limit.lo[d]) % n + n) % n;
    if (start + size <= n) {
      parts[d] = 1;
      lo[d][0] = limit.lo[d] + start;
      hi[d][0] = limit.lo[d] + start + size;
    } else {
      parts[d] = 2;
      lo[d][0] = limit.lo[d];
      hi[d][0] = limit.lo[d] + start + size - n;
      lo[d][1] = limit.lo[d] + start;
      hi[d][1] = limit.hi[d];
    }
  }
  int at[rank_max] = {};
  for (;;) {
    box4 b;
    for (int d = 0; d < rank_max; ++d) {
      b.lo[d] = lo[d][at[d]];
      b.hi[d] = hi[d][at[d]];
    }
    if (!b.empty()) f(b);
    int d = rank_max - 1;
    while (d >= 0 && ++at[d] == parts[d]) at[d--] = 0;
    if (d < 0) return;
  }
}

/// True if the region's view shows any element of the array.
inline bool touches_any(const detail::region& r) {
  bool any = false;
  each_touched(r, [&](const box4&) { any = true; });
  return any;
}

/// Returns the coordinate along dimension d of the element that the region's view shows at `at`; empty: the border's
/// constant.
inline std::optional<index_t> source_of(const detail::region& r, int d, index_t at) {
  const index_t lo = r.limit_lo[d], hi = r.limit_hi[d], n = hi - lo;
  if (at >= lo && at < hi) return at;
  if (r.edge == border::fill) return {};
  return r.edge == border::clamp ? std::clamp(at, lo, hi - 1) : lo + ((at - lo) % n + n) % n;
}

/// True if the region is a plain box inside the limits: it needs no border.
bool is_plain(const detail::region& r);

}  // namespace troupe::logic
