// What this file is for: a box that one node sends to another as soon as a task there has written it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/region.hpp"
#include "actors/protocol/memory_space.hpp"

namespace troupe::detail {

/// A box of a tile that a task on one node, the lender, is about to write as a whole, and that a task on another node,
/// the borrower, reads. Both are told: the lender keeps the box as the task leaves it, the borrower pulls it.
struct promise {
  array_core* array = nullptr;  ///< for placement and the borrower, which has a task that uses it
  std::uint64_t array_id = 0;
  std::uint32_t tile = 0;
  logic::box4 where;
  std::uint64_t writer = 0;  ///< task_record::sequence of the task that writes it
  memory_space lender = 0, borrower = 0;
  std::uint64_t stay = 0;    ///< of the lender, see executor::stay
  std::uint64_t number = 0;  ///< that of no other box that one node keeps for another; 0: it is broken
  bool shared = false;       ///< the borrower pulls it for a task that it was handed before
};

}  // namespace troupe::detail
