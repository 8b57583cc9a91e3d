// What this file is for: how a box of an array, with its border, is put together from whole tiles.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/logic/data/array_core.hpp"

namespace troupe::logic {

/// Part of a view that comes from one tile: element p of `to` is element p - shift of the tile; where p - shift lies
/// outside `from`, it is the nearest element inside.
struct piece {
  std::uint32_t tile = 0;
  box4 to;         // box of the view, in coordinates of the array
  box4 from;       // box inside the tile, in coordinates of the array
  point4 shift{};  // nonzero where a border wraps

  /// True if the piece has no border: `to` is `from`, shifted.
  bool is_plain() const {
    for (int d = 0; d < rank_max; ++d)
      if (to.lo[d] - shift[d] != from.lo[d] || to.hi[d] - shift[d] != from.hi[d]) return false;
    return true;
  }
};

/// Replaces `out` by the pieces of a view of the region; elements that the border fills with a constant are in none of
/// them.
void pieces_of(const detail::region&, const detail::array_core&, std::vector<piece>& out);

/// True if the pieces of a view of the region are one piece of a tile, which can be used where it is.
bool is_in_place(const detail::region&, std::span<const piece>);

/// True if some of the view lies beyond the limits and must hold the border's constant.
bool has_constant_border(const detail::region&);

/// True if a device that lacks a tile of `whole` elements fetches all of it to read `part` of them: later tasks will
/// find the tile there.
constexpr bool fetches_whole(std::uint64_t part, std::uint64_t whole) { return 2 * part >= whole; }

}  // namespace troupe::logic
