// What this file is for: a tile's bytes in host memory: where they are, how they are laid out.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "actors/logic/data/array_core.hpp"
#include "actors/protocol/report_batch.hpp"

namespace troupe::detail {

/// Returns the bytes of a tile; the first caller allocates them, and fills them unless all of the tile is
/// `overwritten`. Thread-safe. Throws error(out_of_memory).
std::byte* host_tile(runtime_state&, array_core&, std::uint32_t tile, bool overwritten);
/// Frees a tile's bytes. No thread may use the tile. Not for memory of the caller.
void free_host_tile(runtime_state&, array_core&, std::uint32_t tile) noexcept;
/// Allocates bytes as those of tiles are. Throws error(out_of_memory).
std::byte* new_tile_bytes(runtime_state&, std::size_t bytes);
/// Gives bytes of a tile back to where they were allocated.
void give_back_bytes(runtime_state&, std::byte*, std::size_t bytes) noexcept;

/// Deleter of packed bytes that were allocated as those of tiles are.
struct give_back {
  runtime_state* rt = nullptr;
  std::size_t bytes = 0;
  void operator()(std::byte* p) const noexcept { give_back_bytes(*rt, p, bytes); }
};
using loose_bytes = std::unique_ptr<std::byte[], give_back>;
/// Allocates bytes for a tile that belong to none yet.
loose_bytes new_loose_bytes(runtime_state&, std::size_t bytes);
/// True if a tile has bytes that are an allocation of their own: no room around them, no place beside other tiles, not
/// memory of the caller.
bool owns_its_bytes(const array_core&, std::uint32_t tile);
/// Takes a tile's bytes out of it (`exchange`: puts others there instead) and returns them; where the tile does not own
/// its bytes they are freed, and nothing is returned. No thread may use the tile. Not for memory of the caller.
loose_bytes take_host_tile(runtime_state&, array_core&, std::uint32_t tile) noexcept;
loose_bytes exchange_host_tile(runtime_state&, array_core&, std::uint32_t tile, loose_bytes) noexcept;

/// A version of a tile that has come from another node.
struct saved_tile {
  array_core* array = nullptr;
  std::uint32_t tile = 0, version = 0;
  loose_bytes bytes;
};

/// Returns the distances between neighbours in a tile's host bytes, in elements.
std::array<index_t, rank_max> host_strides(const array_core&, std::uint32_t tile);
/// Gives a tile that is about to be overwritten as a whole as much room around it as windows have needed so far; where
/// there is no memory for that, or it would take more than the tile, it stays as it is. No other thread may use the
/// tile.
void make_room(runtime_state&, array_core&, std::uint32_t tile) noexcept;
/// Gives a tile that is about to be overwritten as a whole bytes in its place, if it has bytes of its own elsewhere and
/// that has been missed. No other thread may use the tile.
void move_to_place(runtime_state&, array_core&, std::uint32_t tile) noexcept;
/// Frees the bytes of all tiles of an array that nobody uses any more, but for memory of the caller.
void free_host_tiles(runtime_state&, array_core&) noexcept;
/// Returns the distances between neighbours in a packed copy of a box, in elements.
std::array<index_t, rank_max> packed_strides(const logic::box4&);

}  // namespace troupe::detail
