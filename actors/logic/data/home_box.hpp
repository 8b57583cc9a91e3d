// What this file is for: a part of a tile that is copied to host memory by itself, while the tile stays where it is.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//   placement --make_fetch--> device with the tile    it fills `bytes`, sets `here`, and ends the internal task
//   placement --task with home boxes--> core group      the task reads the boxes instead of the host's tile
//
// The bytes have memory of their own, so nothing that happens to the host's tile meanwhile (a transfer of all of it, a
// saved version) disturbs a task that reads the box. They are never changed once they are here.
#pragma once

#include <cstdint>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/view_bytes.hpp"
#include "actors/protocol/memory_space.hpp"

namespace troupe::detail {

struct home_box {
  const array_core* array = nullptr;
  std::uint32_t tile = 0, version = 0;  // of the bytes
  memory_space from = host_space;       // the space that has the tile
  logic::box4 where;                    // in coordinates of the array
  view_bytes bytes;                     // packed
  bool here = false;                    // by the executor, before it reports the end of the internal task
};

}  // namespace troupe::detail
