// What this file is for: where the current bytes of an array's tiles are, in which memories.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include <troupe/detail/id_set.hpp>

#include "actors/logic/data/ref_list.hpp"
#include "actors/protocol/memory_space.hpp"

namespace troupe::detail {

class peer_loan;
struct home_box;

/// Parts of one version of a tile that are in host memory while the tile is elsewhere.
struct boxes_at_home {
  struct one {
    std::shared_ptr<home_box> box;
    task_ref coming;  // the internal task that fetches it
  };
  std::uint32_t version = 0;
  memory_space from = host_space;
  bool refused = false;  // one did not come: the whole tile is to be brought home
  float ns = 0;          // what copying all of them takes
  std::vector<one> all;
};

/// Spaces over which one version of a tile spreads from node to node; each passes it on to a bounded number of others.
struct tile_spread {
  struct holder {
    memory_space space;
    std::uint8_t passed_on = 0;
  };
  std::uint32_t version = 0;
  std::vector<holder> holders;  // in the order in which they get the version
};

/// Location of the current bytes of a tile. Placement, except for the version.
struct coherence_entry {
  std::atomic<std::uint32_t> version{1};  // of the bytes; executors read it while no task may write
  memory_space dirty_in = host_space;     // the space with the dirty copy; host_space: the host's copy is current
  compact_ids cached;                     // spaces believed to hold a current copy
  task_ref moving;                        // the transfer that makes the host's copy current
  std::exception_ptr lost;                // why there is no current copy: the only one went with its device
  std::shared_ptr<peer_loan> loan;        // of dirty_in to other devices, if for this version; see lending
  task_ref lending;                       // the internal task that opens the loan
  std::unique_ptr<tile_spread> spread;    // null: the version has not been sent to several nodes
  std::unique_ptr<boxes_at_home> boxes;   // null: host memory has no part of it by itself
  // Tasks in flight that may copy all of the host's bytes though they need a part (part_readers), and tasks in flight
  // that write a part of them (part_writers).
  ref_list part_readers, part_writers;
  // Tasks that nodes have been handed, that write all of it, and that have not retired; the executor that has them.
  ref_list handed;
  std::uint16_t handed_to = 0;
  static constexpr std::uint16_t several = 0xffff;
};

/// Locations of an array's tiles; allocated when the array is first used outside host memory.
struct array_coherence {
  explicit array_coherence(std::uint32_t count) : tiles(new coherence_entry[count]) {}
  std::unique_ptr<coherence_entry[]> tiles;
  id_set spaces;  // spaces that may hold copies
};

}  // namespace troupe::detail
