// What this file is for: host memory under a budget: which task gets room, which tiles leave for the disk.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <span>
#include <vector>

#include <troupe/report.hpp>

#include "actors/logic/data/array_coherence.hpp"
#include "actors/logic/data/host_budget.hpp"
#include "actors/logic/data/task_graph.hpp"
#include "actors/memory/spill_disk.hpp"

namespace troupe::detail {

/// Gives tasks room for their tiles before they are handed over, and evicts tiles to make it.
///
///   host_memory --move: spill, load--> disk --done--> account_for_move
///   host_memory --fetch--> device --done--> went_home --move: spill--> disk      (the only copy is on the device)
///
/// A task that is to be handed over has room for all its tiles, or for none and waits. Among those that wait the oldest
/// comes first: tiles that it needs are not evicted for younger ones, and room that is being made for it is not given
/// away. Room that is free anyway may go to any of them: the oldest may wait for bodies that themselves wait for a
/// younger task.
///
/// A part of placement, which has one if there is a budget. With the turn only, but `check_size`. What becomes of a
/// waiting task is told to the owner, from within `give_room`; the owner may call anything here but `give_room`.
class host_memory {
 public:
  class owner {
   public:
    /// The task has room, and nothing else keeps it from going on.
    virtual void room_granted(task_record&) = 0;
    /// The task is to fail with that error, which names no task. Called by `must_wait`, too.
    virtual void room_refused(task_record&, const std::exception_ptr& why) = 0;
    /// The task was cancelled while it waited.
    virtual void room_unwanted(task_record&) = 0;
    /// Has a tile whose only copy is elsewhere copied to host memory; `went_home` is called when it is there.
    virtual void fetch(array_core&, std::uint32_t tile, coherence_entry&) = 0;

   protected:
    ~owner() = default;
  };

  /// `limit`: bytes of host memory that tiles may take.
  host_memory(std::uint64_t limit, runtime_state& rt, logic::task_graph& graph, owner& o)
      : budget_(limit), rt_(rt), graph_(graph), owner_(o) {}
  /// Sets the disk to which tiles are spilled; without one room becomes free only as arrays lose their last handles.
  void spill_to(spill_disk& d) { disk_ = &d; }

  /// Throws error(out_of_memory) if the task needs more than the whole budget at once. Any thread.
  void check_size(const task_record&) const;

  // ---- a task -------------------------------------------------------------------------------------------------------
  /// True if the task must wait for room or for tiles to be read from disk, or has been refused; false: it has room.
  bool must_wait(task_record&);
  /// True if the task could be given room at once, and would wait for no tile to leave or to be read.
  bool has_room_now(const task_record&);
  /// Reserves room for a task; there must be enough. True if it has to wait until some of its tiles have been read.
  bool take_room(task_record& t) { return take_room(t, budget_.needs_of(t)); }
  /// Releases the room of a task that has ended or was returned.
  void give_back(task_record&);
  /// Returns the error with which `awaited` is to fail because it does not fit into the budget beside the task
  /// `inside`, whose body keeps its room while it waits for it; null if it does fit.
  std::exception_ptr too_much_beside(const task_record& inside, const task_record& awaited);
  /// Notes that the body of `inside`, which keeps its room, waits for `awaited` without a limit. If every task that has
  /// room waits so for one that has none, the youngest of these is refused by the next `give_room`.
  void note_wait(task_record& inside, task_record& awaited);
  /// Gives waiting tasks room, and evicts tiles for them, if something has changed; true if some task may go on.
  bool give_room();
  /// Forgets all waiting tasks and returns them, the oldest first.
  std::vector<task_record*> take_waiting();

  // ---- a tile -------------------------------------------------------------------------------------------------------
  /// Continues an eviction when a copy to host memory has ended: spills the tile, or keeps it if it has no host bytes.
  void went_home(const access&);
  /// Notes that the disk is done with a spill or a load, which may have failed.
  void account_for_move(task_record&);
  /// Copies a tile from disk if it is being loaded or spilled there, or only there; false: host memory has it.
  bool read_from_disk(const array_core&, std::uint32_t tile, std::byte* to) const;
  /// True if the tile has room in host memory that it will keep for now.
  static bool keeps_room(const array_core&, std::uint32_t tile);
  /// True if no tile is on its way to or from the disk.
  bool is_still() const { return moves_ == 0; }

  // ---- an array -----------------------------------------------------------------------------------------------------
  /// Notes that the last handle of an array is gone.
  void dropped(const array_core& a) { budget_.dropped(a); }
  /// Gives up the room of an array that is about to be freed, in memory and on disk.
  void forget(array_core&);

  /// Adds what has been spilled and read, and what is on disk.
  void report(runtime_report&) const;

 private:
  struct request {
    task_record* task;
    std::uint64_t number;
    std::exception_ptr failed;  // a tile that was to make room for it could not leave
  };
  enum class answer { granted, waits, refused };
  struct reply {
    answer what = answer::waits;
    std::exception_ptr why{};  // refused
  };

  struct body_wait {
    task_ref inside, awaited;
  };

  bool take_room(task_record&, std::span<const logic::host_budget::need>);
  bool stands_still();
  void end_standstill();
  bool has_begun_to_load(task_record&);
  bool refuse(task_record&, const std::exception_ptr& why);
  reply answer_to(request&, std::uint64_t& promised);
  void evict(budgeted_tile&, const request&);
  void move(budgeted_tile&, task_record*);

  logic::host_budget budget_;
  runtime_state& rt_;
  logic::task_graph& graph_;
  owner& owner_;
  spill_disk* disk_ = nullptr;
  std::deque<request> short_;  // ready tasks for which there is no room yet, oldest first
  std::vector<body_wait> waits_;
  std::size_t holders_ = 0;  // tasks that have room
  std::uint64_t requests_ = 0, passes_ = 0, moves_ = 0;
  bool changed_ = false;  // since the last give_room
};

}  // namespace troupe::detail
