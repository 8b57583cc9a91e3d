// What this file is for: fragments of a tile are added, and put into cells once there are many.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/fragments.hpp"

#include <algorithm>

namespace troupe::detail {

void fragment_list::add(fragment f) {
  std::uint32_t i = unused_;
  if (i != none) {
    unused_ = slots_[i].next;
  } else {
    i = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  }
  slots_[i].what = std::move(f);
  slots_[i].used = true;
  slots_[i].next = none;
  ++count_;
  if (is_indexed())
    enter(i);
  else if (count_ > few)
    make_index();
}

// Puts all fragments into cells along the dimension in which they begin at the most different places.
void fragment_list::make_index() {
  std::size_t most = 0;
  for (int d = 0; d < rank_max; ++d) {
    std::vector<index_t> begins;
    each([&](const fragment& f) { begins.push_back(f.where.lo[d]); });
    std::ranges::sort(begins);
    const auto different = static_cast<std::size_t>(std::ranges::unique(begins).begin() - begins.begin());
    if (different <= most) continue;
    most = different;
    along_ = d;
  }
  const index_t extent = tile_.hi[along_] - tile_.lo[along_];
  std::uint32_t cells = 0;
  for (index_t length = std::max<index_t>(1, (extent + cells_max - 1) / cells_max);; length *= 2) {
    const auto here = static_cast<std::uint32_t>((extent + length - 1) / length);
    levels_.push_back({.length = length, .from = cells, .cells = here});
    cells += here;
    if (here <= 1) break;
  }
  cells_.assign(cells, none);
  for (std::uint32_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].used) enter(i);
}

// Returns the level whose cells are the shortest that are not shorter than the box.
fragment_list::level& fragment_list::level_of(const logic::box4& b) {
  const index_t extent = b.hi[along_] - b.lo[along_];
  const auto at = std::ranges::find_if(levels_, [&](const level& l) { return l.length >= extent; });
  return at == levels_.end() ? levels_.back() : *at;
}

void fragment_list::enter(std::uint32_t i) {
  const logic::box4& b = slots_[i].what.where;
  level& l = level_of(b);
  const auto cell = static_cast<std::uint32_t>((b.lo[along_] - tile_.lo[along_]) / l.length);
  slots_[i].next = std::exchange(cells_[l.from + cell], i);
  ++l.count;
}

}  // namespace troupe::detail
