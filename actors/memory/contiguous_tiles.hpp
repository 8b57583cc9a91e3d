// What this file is for: tiles that lie one behind the other, so that a box over several of them needs no copy.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Where an array is cut along one dimension only, and nothing lies before that, the elements of packed tiles one behind
// the other are those of the whole array in order. All tiles then get their places in one piece of memory. A tile may
// also lie elsewhere: with room around it, or where it came from another node; who shows a box looks where its tiles
// are. Thread-safe, but for `vacate` and `free_piece`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "actors/logic/data/array_core.hpp"

namespace troupe::detail {

/// True if tiles one behind the other are the array in order, and each of them then begins as tiles have to.
bool could_be_contiguous(const array_core&);
/// Returns the place of a tile that is about to get bytes; the first caller for an array allocates the memory for all.
/// Null: the tile gets bytes elsewhere.
std::byte* place_of(runtime_state&, array_core&, std::uint32_t tile) noexcept;
/// True if these bytes of a tile are in its place, and not an allocation of their own.
bool is_in_place(const array_core&, std::uint32_t tile, const std::byte* bytes);
/// Gives back the pages of a place that its tile has left. No thread may use the tile.
void vacate(runtime_state&, array_core&, std::uint32_t tile) noexcept;
/// Frees the memory of all places. No thread may use the array.
void free_piece(runtime_state&, array_core&) noexcept;

}  // namespace troupe::detail
