// What this file is for: tasks that read the same tiles wait for one gate, and not for the writer of each tile.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/logic/data/read_groups.hpp"
#include "actors/logic/data/task_graph.hpp"
#include "actors/logic/data/tile_history.hpp"

namespace troupe::logic {

using detail::access;
using detail::tile_history;

/// The groups that the task which is being ordered joins with its reads, and what those mean to later writers. With the
/// turn, or the side turn of the graph.
class gated_reads {
 public:
  /// Makes gates; implemented by the owner of the tasks.
  class gate_maker {
   public:
    /// Returns a record of kind gate, which touches nothing; null if there is no memory for it.
    virtual task_record* make_gate() noexcept { return nullptr; }

   protected:
    ~gate_maker() = default;
  };

  gated_reads(task_graph& g, gate_maker& m) : graph_(g), maker_(m) {}

  /// Allows tasks to wait for gates. While that is not allowed, as at first, groups fall apart where their tiles are
  /// used. Gates are early successors.
  void allow(bool are) { allowed_ = are; }
  bool are_allowed() const { return allowed_; }

  /// Begins with the task that is ordered next: finds the groups that it is to join, and forms those that it pays to
  /// form. Gates made on the way are appended to `made`, already ordered.
  void begin(const task_record&, std::vector<task_record*>& made);
  /// Orders the reads from that access on, and returns how many they are; 0: they are of no group, or of one that is
  /// not complete any more, as the task has changed a tile of it itself. Asked for each access in turn but for those
  /// that were ordered.
  std::size_t join(task_record& task, int access);
  /// True if the task comes after the other one, which has not ended, because of what it has read in groups.
  bool comes_after(const task_record&, const task_ref&) const;
  /// Has the writer of a tile come after those who have read it in a group, which the tile leaves.
  void leave(tile_history&, task_record& writer);
  /// Lists the readers of a group at one of its tiles, which leaves it.
  void take_out(tile_history&);
  /// Has the history refer to no group any more; its tile is about to be freed.
  void forget(tile_history& s) { groups_.leave(s); }

 private:
  // A task's reads from an access on, which are those of a group.
  struct joined_group {
    int first;
    std::size_t reads;
    detail::read_group* group;
    std::uint64_t number;  // the group's: it may have become another one
    bool joined = false;   // it was complete still when the task came there
  };

  void find(const task_record&, std::vector<task_record*>& made);
  detail::read_group* form(std::span<const access>, std::vector<task_record*>& made);
  void order_gate(task_record& gate, const detail::read_group&);
  bool join(task_record&, joined_group&);

  task_graph& graph_;
  gate_maker& maker_;
  detail::read_groups groups_;
  bool allowed_ = false;
  const task_record* task_ = nullptr;  // that is being ordered
  std::vector<joined_group> found_;    // its groups
  std::size_t next_ = 0;               // of these
};

}  // namespace troupe::logic
