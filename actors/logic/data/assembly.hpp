// What this file is for: how a box of an array, with its border, is put together from whole tiles.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "actors/logic/data/array_core.hpp"

namespace troupe::logic {

/// A part of a view that comes from one tile: element p of `to` is element p - shift of the tile, moved to the nearest
/// inside `from` where it lies outside.
struct piece {
  std::uint32_t tile = 0;
  box4 to;         // of the view, in coordinates of the array
  box4 from;       // inside the tile, in coordinates of the array
  point4 shift{};  // nonzero where a border wraps

  /// No border: `to` is `from`, shifted.
  bool is_plain() const {
    for (int d = 0; d < rank_max; ++d)
      if (to.lo[d] - shift[d] != from.lo[d] || to.hi[d] - shift[d] != from.hi[d]) return false;
    return true;
  }
};

/// The pieces of a view of the region; what a border fills with a constant is in none of them. Replaces `out`.
void pieces_of(const detail::region&, const detail::array_core&, std::vector<piece>& out);

/// Some of the view lies beyond the limits and is to hold the border's constant.
bool has_constant_border(const detail::region&);

/// Whether a device that lacks a tile of `whole` elements fetches all of it for `part` of them: later tasks will find it
/// there.
constexpr bool fetches_whole(std::uint64_t part, std::uint64_t whole) { return 2 * part >= whole; }

}  // namespace troupe::logic
