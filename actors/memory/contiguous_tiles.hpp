// What this file is for: tiles that lie one behind the other, so that a box over several of them needs no copy.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Where an array is cut along one dimension only, and nothing lies before that, the elements of packed tiles one behind
// the other are those of the whole array in order. All tiles then have their places in one piece of memory. A tile may
// also lie elsewhere: with room around it, where it came from another node, or because its array was used by others
// than this machine's cores; who shows a box looks where its tiles are.
//
// The piece is there as long as one tile is in its place. Thread-safe, but for `free_piece`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "actors/logic/data/array_core.hpp"

namespace troupe::detail {

/// Returns when tiles of a new array are to get bytes in their places: never, unless tiles one behind the other are the
/// array in order, and each then begins as tiles have to; only if that is missed, where devices gain by pinned tiles,
/// as the whole piece would be pinned for its first tile.
placing first_placing(const runtime_state&, const array_core&);
/// Returns the place of a tile that is about to get bytes, and counts it; the first caller for an array allocates the
/// memory for all. Null: the tile gets bytes elsewhere.
std::byte* take_place(runtime_state&, array_core&, std::uint32_t tile) noexcept;
/// Uncounts a place, whose tile has other bytes `now` (null: none), and gives its pages back; or a place that was
/// counted twice, if those are the bytes in it. No thread may use the place, but in the second case.
void leave_place(runtime_state&, array_core&, std::uint32_t tile, const std::byte* now) noexcept;
/// True if these bytes of a tile are in its place, and not an allocation of their own.
bool is_in_place(const array_core&, std::uint32_t tile, const std::byte* bytes);
/// Frees the memory of all places. No thread may use the array.
void free_piece(runtime_state&, array_core&) noexcept;

}  // namespace troupe::detail
