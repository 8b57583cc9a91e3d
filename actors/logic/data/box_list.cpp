// What this file is for: subtracting from lists of boxes, and joining them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/box_list.hpp"

#include <algorithm>
#include <utility>

namespace troupe::logic {

box_list without(const box_list& from, const box4& b) {
  box_list rest;
  for (const box4& a : from)
    if (overlap(a, b))
      subtract(a, b, [&](const box4& piece) { rest.push_back(piece); });
    else
      rest.push_back(a);
  return rest;
}

box_list without(box_list from, const box_list& others) {
  for (const box4& b : others) {
    if (from.empty()) break;
    if (std::ranges::any_of(from, [&](const box4& a) { return overlap(a, b); })) from = without(std::as_const(from), b);
  }
  return from;
}

index_t volume(const box_list& all) {
  index_t sum = 0;
  for (const box4& b : all) sum += b.volume();
  return sum;
}

namespace {
// True if b follows a along a dimension and is as large in all others.
bool follows(const box4& a, const box4& b, int along) {
  for (int d = 0; d < rank_max; ++d)
    if (d == along ? b.lo[d] != a.hi[d] : a.lo[d] != b.lo[d] || a.hi[d] != b.hi[d]) return false;
  return true;
}

// Orders boxes so that those that follow each other along the dimension are neighbours.
bool is_before(const box4& a, const box4& b, int along) {
  for (int d = 0; d < rank_max; ++d) {
    if (d == along) continue;
    if (a.lo[d] != b.lo[d]) return a.lo[d] < b.lo[d];
    if (a.hi[d] != b.hi[d]) return a.hi[d] < b.hi[d];
  }
  return a.lo[along] < b.lo[along];
}

void unite_along(box_list& all, int along) {
  std::ranges::sort(all, [&](const box4& a, const box4& b) { return is_before(a, b, along); });
  std::size_t last = 0;
  for (std::size_t i = 1; i < all.size(); ++i)
    if (follows(all[last], all[i], along))
      all[last].hi[along] = all[i].hi[along];
    else
      all[++last] = all[i];
  all.resize(last + 1);
}
}  // namespace

void unite(box_list& all) {
  for (std::size_t before = 0; all.size() > 1 && all.size() != before;) {
    before = all.size();
    for (int d = rank_max; d-- != 0;) unite_along(all, d);
  }
}

}  // namespace troupe::logic
