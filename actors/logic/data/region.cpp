// What this file is for: clipping rules of regions.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/region.hpp"

namespace troupe::logic {

bool is_plain(const detail::region& r) {
  const box4 b{r.lo, r.hi};
  return r.edge == border::clip || r.edge == border::refuse || box4{r.limit_lo, r.limit_hi}.contains(b);
}

box4 view_box(const detail::region& r) {
  const box4 b{r.lo, r.hi};
  return r.edge == border::clip ? intersect(b, box4{r.limit_lo, r.limit_hi}) : b;
}

}  // namespace troupe::logic
