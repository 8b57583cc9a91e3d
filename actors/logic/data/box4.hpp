// What this file is for: boxes of any rank up to four, as the untyped inside of the library computes with them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include <troupe/box.hpp>

namespace troupe::logic {

/// Dimensions beyond an array's rank have extent 1. Coordinates count elements.
using box4 = box<rank_max>;
using point4 = std::array<index_t, rank_max>;

constexpr bool overlap(const box4& a, const box4& b) {
  for (int d = 0; d < rank_max; ++d)
    if (a.lo[d] >= b.hi[d] || b.lo[d] >= a.hi[d]) return false;
  return true;
}

/// Calls `out(piece)` for boxes that together are `a` without `b`; at most 2 x 4 of them, disjoint.
template <class Out>
void subtract(box4 a, const box4& b, Out&& out) {
  for (int d = 0; d < rank_max; ++d) {
    if (a.lo[d] < b.lo[d]) {
      box4 piece = a;
      piece.hi[d] = b.lo[d];
      out(piece);
      a.lo[d] = b.lo[d];
    }
    if (b.hi[d] < a.hi[d]) {
      box4 piece = a;
      piece.lo[d] = b.hi[d];
      out(piece);
      a.hi[d] = b.hi[d];
    }
  }
}

/// Calls f(its first element) for each row of the box along a dimension; dimensions behind it have one element or belong
/// to the row. Not for empty boxes.
template <class F>
void each_row(const box4& b, int along, F&& f) {
  point4 at = b.lo;
  for (;;) {
    f(at);
    int d = along - 1;
    while (d >= 0 && ++at[d] == b.hi[d]) {
      at[d] = b.lo[d];
      --d;
    }
    if (d < 0) return;
  }
}

}  // namespace troupe::logic
