// What this file is for: where the copies of tiles are, and the internal tasks that move, lend and give them up.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "actors/logic/data/directory.hpp"
#include "actors/logic/data/task_graph.hpp"
#include "actors/logic/scheduling/assignment.hpp"
#include "actors/placement/notifications.hpp"
#include "actors/protocol/memory_space.hpp"

namespace troupe::detail {

class executor;

class lineage_log;

/// Has the data of a task moved to where the task runs, before it is handed over.
///
///   transfers --transfer--> device that has the only copy --done--> ended: host memory has it
///   transfers --fetch--> device that has the only copy --done--> ended: host memory has a part of it
///   transfers --lend--> device that has the tile --done--> the task, with the loan, goes to the device that copies it
///
/// A tile stays dirty in its device while others have copies of it: that device remains its owner, and copies it to
/// host memory when it must make room or a task needs it there. Only a task that writes the tile elsewhere takes that
/// over. So there is one loan for a version, shared by all that read it; see protocol/peer_loan.hpp.
///
/// A part of placement; with the turn only. The locations themselves are in the arrays (coherence_entry), where
/// logic/data/directory reads and writes them.
class transfers {
 public:
  /// Needs of others: the order of tasks, costs and names of executors, the executors by their number, and what is to
  /// be called after the turn. All are kept up to date by the owner.
  transfers(runtime_state& rt, logic::task_graph& graph, logic::assignment& a, const std::vector<executor*>& executors,
            notifications& told)
      : rt_(rt), graph_(graph), assignment_(a), executors_(executors), told_(told) {}
  /// Sets the log of what nodes have written, which is told of what host memory loses; before the first task.
  void log_to(lineage_log& l) { log_ = &l; }
  /// Has parts of tiles copied to host memory by themselves where a task reads no more. Not under a budget of host
  /// memory, which knows whole tiles only.
  void bring_parts_home() { brings_parts_ = true; }

  // ---- which spaces reach each other --------------------------------------------------------------------------------
  /// Makes copies between two devices' spaces direct.
  void connect(memory_space, memory_space);
  /// Sets the costs of direct copies into `a` from `b` and into `b` from `a`.
  void know_peers(memory_space a, memory_space b, logic::edge_cost into_a, logic::edge_cost into_b);
  /// Adds a node, to which copies from here cost `in` and back `out`. `lends`: other nodes may copy from it. All nodes
  /// of a cluster know each other; costs of copies between two others are not known here, so those of the link to this
  /// node are assumed.
  void add_node(const executor_facts&, logic::edge_cost in, logic::edge_cost out, bool lends);

  // ---- before a task is handed over ---------------------------------------------------------------------------------
  /// True if the task must wait until data has moved, which has begun: it has been linked to what it waits for.
  bool must_wait(task_record&, memory_space where, bool on_node);
  /// Notes that the task is about to be handed over, with nothing in its way.
  void leaves(task_record&, memory_space where, bool on_node);

  // ---- one tile -----------------------------------------------------------------------------------------------------
  /// Has the only current copy of a tile, which another memory space has, copied to host memory.
  void fetch(array_core&, std::uint32_t tile, coherence_entry&);
  /// Asks devices that may have copied a tile, one after the other, for their copy after the dirty one is lost; marks
  /// the tile lost if there is none.
  void rescue(array_core&, std::uint32_t tile, coherence_entry&, std::exception_ptr lost);
  /// Consequence of a transfer's end for its tile.
  enum class outcome {
    superseded,       ///< nothing: another transfer has been begun, or the tile was written meanwhile
    at_home,          ///< the host's copy is current, or the tile is lost
    lost_with_node,   ///< the node that has it cannot send it: coherence_entry::dirty_in names that still
    asked_elsewhere,  ///< another device has been asked
    part_at_home      ///< host memory has a part of it, or it is asked for as a whole next
  };
  outcome ended(task_record&);

  // ---- one array ----------------------------------------------------------------------------------------------------
  /// Has all of an array copied back to host memory; true if some tile is on its way.
  bool bring_home(array_core&);
  /// Has each device free its copies; the last one to have done so frees the array.
  void forget_copies(array_core&);

 private:
  enum class bringing { waits, has, whole };
  bringing bring_parts(task_record&, array_core&, std::uint32_t tile, coherence_entry&, bool on_device);
  const boxes_at_home::one* add_box(array_core&, std::uint32_t tile, coherence_entry&, const logic::box4&);
  outcome box_ended(task_record&);
  enum class borrowed { waits, has, refused };
  borrowed borrow(task_record&, array_core&, std::uint32_t tile, coherence_entry&);
  void hand_over(task_record&, memory_space);
  void begin_transfer(array_core&, std::uint32_t tile, coherence_entry&, bool discard);
  void choose_sources(task_record&, memory_space where);
  memory_space source_of(const array_core&, std::uint32_t tile, coherence_entry&, memory_space where, bool whole);
  bool gives(memory_space, memory_space to) const;

  runtime_state& rt_;
  logic::task_graph& graph_;
  logic::assignment& assignment_;
  const std::vector<executor*>& executors_;
  notifications& told_;
  lineage_log* log_ = nullptr;  // null: there are no nodes
  bool brings_parts_ = false;
  std::vector<logic::box4> parts_;  // of the tile that is looked at
  logic::space_set lenders_;        // spaces of nodes from which others may copy
};

}  // namespace troupe::detail
