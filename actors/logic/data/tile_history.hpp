// What this file is for: the last writer of a tile, or of parts of it, and the readers since.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <memory>

#include "actors/logic/data/fragments.hpp"
#include "actors/logic/data/ref_list.hpp"

namespace troupe::detail {

struct read_group;

/// Last writer of a tile and the readers since. Placement.
struct tile_history {
  task_ref writer;
  std::exception_ptr poison;  // the last writer failed
  bool valid = false;         // written as a whole; else see parts
  ref_list readers;
  read_group* group = nullptr;           // has more of them; null: there is none
  std::unique_ptr<fragment_list> parts;  // null: whole-tile accesses only
};

}  // namespace troupe::detail
