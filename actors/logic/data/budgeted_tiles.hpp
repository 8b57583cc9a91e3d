// What this file is for: the states of an array's tiles in the host memory budget.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <memory>

#include "actors/logic/data/ref_list.hpp"

namespace troupe::detail {

struct array_core;

/// State of a tile in the host memory budget, and its users. Placement.
struct budgeted_tile {
  enum class stage : unsigned char {
    nowhere,  ///< the tile has no contents, or none that a task could read
    here,     ///< the tile has room in host memory
    leaving,  ///< being spilled; its room is free when has_left() is called
    on_disk,  ///< the contents are on disk only
    coming    ///< being read from disk, into room that is reserved
  };
  array_core* array = nullptr;
  budgeted_tile* older = nullptr;  // neighbours in the list of tiles that are here and not in use
  budgeted_tile* newer = nullptr;
  std::int64_t offset = -1;       // of the tile's room on disk; negative: none
  std::uint64_t seen = 0;         // number of the last list of needs that has the tile, at `index`
  std::uint64_t wanted = 0;       // the last pass in which a waiting task wanted the tile
  std::uint64_t wanted_soon = 0;  // the last pass in which one of the first waiting tasks wanted it
  std::uint64_t promised = 0;     // the last pass in which room for the tile was being made
  std::uint64_t for_whom = 0;     // leaving: the request that the tile makes room for
  task_ref moving;                // leaving, coming: the task that moves the bytes
  std::exception_ptr trouble;     // on_disk: why the last attempt to read it failed
  std::uint32_t tile = 0, users = 0, index = 0;
  stage at = stage::nowhere;
  bool saved = false;  // the disk has the same bytes as host memory
};

/// Budget states of an array's tiles; allocated when the array is first used under a budget.
struct budgeted_tiles {
  explicit budgeted_tiles(std::uint32_t count) : tiles(new budgeted_tile[count]) {}
  std::unique_ptr<budgeted_tile[]> tiles;
  std::uint64_t bytes = 0;  // of tiles that have room
};

}  // namespace troupe::detail
