// What this file is for: a tile's bytes in host memory: where they are, how they are laid out.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "actors/logic/data/array_core.hpp"
#include "actors/memory/record_pool.hpp"

namespace troupe::detail {

/// The bytes of a tile, allocated (and filled, unless all of it is `overwritten`) by whoever comes first. Thread-safe.
/// Throws error(out_of_memory).
std::byte* host_tile(house_link&, array_core&, std::uint32_t tile, bool overwritten);
/// Frees them; nobody uses the tile. Not for memory of the caller.
void free_host_tile(house_link&, array_core&, std::uint32_t tile) noexcept;
/// Where its bytes go back to.
void give_back_bytes(house_link&, std::byte*, std::size_t bytes) noexcept;

/// Bytes of the size of a tile, of the kind that tiles are made of, packed.
struct give_back {
  house_link* home = nullptr;
  std::size_t bytes = 0;
  void operator()(std::byte* p) const noexcept { give_back_bytes(*home, p, bytes); }
};
using loose_bytes = std::unique_ptr<std::byte[], give_back>;
loose_bytes new_loose_bytes(house_link&, std::size_t bytes);
/// Takes a tile's bytes out of it, or puts others in their place and gives those: nobody uses the tile. Not for memory of
/// the caller.
loose_bytes take_host_tile(house_link&, array_core&, std::uint32_t tile) noexcept;
loose_bytes exchange_host_tile(house_link&, array_core&, std::uint32_t tile, loose_bytes) noexcept;

/// A version of a tile that has come from another node.
struct saved_tile {
  array_core* array = nullptr;
  std::uint32_t tile = 0, version = 0;
  loose_bytes bytes;
};
/// One that a task still needs, and that a node has overwritten after the task came back from there.
struct overtaken_tile {
  const task_record* task;
  array_core* array;
  std::uint32_t tile;
};

/// Distances between neighbours in those bytes, in elements.
std::array<index_t, rank_max> host_strides(const array_core&, const logic::box4& tile_box);
/// Distances in a packed copy of a box.
std::array<index_t, rank_max> packed_strides(const logic::box4&);

}  // namespace troupe::detail
