// What this file is for: the log of what must be repeated if a node dies, kept up to date and short.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/logic/data/box_list.hpp"
#include "actors/logic/data/task_graph.hpp"
#include "actors/logic/lineage/lineage.hpp"
#include "actors/logic/scheduling/assignment.hpp"
#include "actors/memory/host_tiles.hpp"

namespace troupe::detail {

class host_memory;

/// Tells the log (logic/lineage) of each task that ran on a node, and of each tile of host memory that is overwritten;
/// values that the log still needs are copied (retained) first. Keeps it short: versions of tiles are copied home while
/// nodes go on with them. The log says which; the node sends what the tile holds after the tasks that it has been sent
/// by then, and later tasks do not wait. The version arrives in memory of its own, which takes the place of the host's
/// bytes of the tile: these are of an older version, and only the log needs them.
///
/// A part of placement, which has one if there are places for nodes. With the turn only.
class lineage_log {
 public:
  using tile_id = std::pair<array_core*, std::uint32_t>;

  /// Needs of others: whether a task is unfinished, costs of copies and names of executors, and (null without
  /// a budget) tiles that are on disk.
  lineage_log(logic::lineage_bounds, runtime_state&, const logic::task_graph&, const logic::assignment&, host_memory*);

  // ---- what the log is told -----------------------------------------------------------------------------------------
  /// A task that is about to be handed over to memory space `where` will overwrite tiles of host memory. Has an effect
  /// once for a task, which may be looked at several times before.
  void note_overwriting(task_record&, memory_space where);
  /// A retired task has written tiles of host memory, or has failed.
  void note_at_home(const task_record&, memory_space where);
  /// A returned task, which is placed again, may have begun to overwrite its tiles of host memory.
  void note_not_run(task_record&, memory_space where);
  /// A task of a node has ended; before its own writes are accounted for. `note_ran` of the same task is next.
  void note_read(const task_record&);
  /// A task has ended in another space: a call with its writes for a node, overwritten tiles for a device.
  void note_ran(task_record&, memory_space where, bool on_node);
  /// An array is about to be freed. What the log needs of it is retained.
  void forget(array_core&);

  // ---- versions copied home while nodes go on -----------------------------------------------------------------------
  /// Calls `ask(array, tile)` for each tile that should be copied home now. The array has been kept (array_core::keep).
  template <class F>
  void each_to_save(F&& ask) {
    for (const auto& [id, number] : log_.to_save(save_bytes))
      if (array_core* const a = kept(id, number)) ask(*a, number);
  }
  /// Counts a node that has joined in an executor's place.
  void note_joined(std::uint16_t executor);
  /// Takes versions that the node in an executor's place has sent. `times`: how often a node had joined there when they
  /// were asked for; those of a node that has gone since are dropped.
  void take_home(const executor_facts&, std::uint64_t times, std::span<saved_tile>);
  /// Notes that a tile that was asked for has not come.
  void not_saved(const tile_id& t) {
    log_.not_saved(t.first->id, t.second, false);
  }  // most are in error: not at once again

  // ---- after a loss -------------------------------------------------------------------------------------------------
  using value_key = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;
  /// A copy of a tile, rows packed. Where there are boxes, only these have been copied.
  struct tile_copy {
    std::shared_ptr<std::byte[]> bytes;
    logic::box_list boxes{};
    bool has(const logic::box4& b) const { return boxes.empty() || logic::without({b}, boxes).empty(); }
  };
  /// How lost tiles are made again, and those that cannot be.
  struct repetition {
    logic::reexecution_plan plan;
    std::map<value_key, tile_copy> copies;  // of all that the plan reads and does not make
    std::vector<tile_id> reexecuted;        // by plan.reexecuted
    std::vector<tile_id> lost;
    /// Returns the bytes of a value that was there before, rows packed; null: some of these boxes (none: of the tile)
    /// was not kept.
    const std::byte* copy(const logic::value& v, std::span<const logic::box4> read = {}) const {
      const tile_copy& c = copies.at(key_of(v));
      const bool is_there =
          c.boxes.empty() ||
          (!read.empty() && std::ranges::all_of(read, [&](const logic::box4& b) { return c.has(b); }));
      return is_there ? c.bytes.get() : nullptr;
    }
  };
  /// Returns what is to be repeated so that these tiles, which were lost with a space, exist again. Sources are copied
  /// now: the host's bytes may change as soon as the turn has been left.
  repetition reexecute_lost(memory_space, std::span<const tile_id> lost);

 private:
  /// Bytes of tiles that each node is asked to save at a time.
  static constexpr std::uint64_t save_bytes = 64u << 20;

  static value_key key_of(const logic::value& v) { return {v.array, v.tile, v.version}; }
  std::shared_ptr<std::byte[]> copy_of(array_core&, std::uint32_t tile);
  std::uint64_t copy_boxes(array_core&, std::uint32_t tile, const logic::box_list& from, tile_copy& to);
  void keep_read(const task_record&, logic::lineage::call&);
  std::optional<std::uint64_t> keep_box(array_core&, const logic::value&, const logic::box4&);
  void retain(array_core&, std::uint32_t tile, bool overwritten);
  void note_read_box(const array_core&, std::uint32_t tile, const logic::box4&);
  logic::box_list boxes_read(const array_core&, const logic::value&) const;
  void drop_unwanted();
  void take_home(memory_space from, saved_tile&);
  array_core* kept(std::uint64_t id, std::uint32_t tile);

  logic::lineage log_;
  runtime_state& rt_;
  const logic::task_graph& graph_;
  const logic::assignment& costs_;
  host_memory* const host_memory_;
  logic::lineage::call ran_;                               // the call that the log is told of next
  std::unordered_map<std::uint64_t, array_core*> logged_;  // by id: the arrays that log_ names
  std::map<value_key, tile_copy> retained_;                // copies of values that host memory no longer has
  /// Boxes of a tile that tasks of nodes have read, of the last version that any has read.
  struct boxes_of_version {
    std::uint32_t version = 0;
    logic::box_list boxes{};
  };
  std::map<std::pair<std::uint64_t, std::uint32_t>, boxes_of_version> read_;  // by array and tile; only of large tiles
  std::vector<std::uint64_t> joined_;  // by executor: how often a node has joined
};

}  // namespace troupe::detail
