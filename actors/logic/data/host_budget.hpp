// What this file is for: which tiles have room in host memory under a budget, which of them may go, what is on disk.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by placement. A tile has room from the moment that it is reserved for a task, whether its bytes are there
// yet or not, so that the sum never exceeds the limit whenever memory is allocated. All tiles of a task are reserved at
// once or none: two tasks that each hold half of their tiles would wait for each other for ever. Tiles of tasks that
// were handed over are held; of the others the least recently used is evicted first. Memory of the caller (adopted
// arrays) does not count.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/budgeted_tiles.hpp"
#include "actors/logic/data/extents.hpp"

namespace troupe::logic {

using detail::array_core;
using detail::budgeted_tile;
using detail::task_record;

class host_budget {
 public:
  using stage = budgeted_tile::stage;

  /// A tile that a task touches.
  struct need {
    budgeted_tile* tile;
    bool contents;  // the tile's contents matter; else all of it is overwritten
    bool changed;
  };

  explicit host_budget(std::uint64_t limit) : limit_(limit) {}

  /// Returns each tile that the task touches once; valid until the next call.
  std::span<const need> needs_of(const task_record&);
  static std::uint64_t bytes_of(const budgeted_tile& p) { return p.array->bytes_of(p.tile); }
  /// Bytes of room that both tasks take together, each tile counted once.
  std::uint64_t bytes_together(const task_record&, const task_record&);
  /// True if the tile has no room yet.
  static bool is_missing(const budgeted_tile& p) { return p.at != stage::here && p.at != stage::coming; }
  static std::uint64_t missing(std::span<const need>);

  /// Reserves and holds room for all of the tiles; there must be room for those that are missing. Tiles that must be
  /// read from disk become `coming`.
  void reserve(std::span<const need>);
  /// Releases the tiles of a task that has ended.
  void let_go(std::span<const need>);

  // ---- one tile -----------------------------------------------------------------------------------------------------
  /// Returns the least recently used tile that is here and not held; `newer` leads to the next.
  budgeted_tile* oldest() const { return oldest_; }
  /// True if the tile can be dropped without loss: it was never filled, or the disk has the same bytes.
  static bool is_spare(const budgeted_tile&);
  /// Evicts a tile that is_spare() from host memory.
  void drop(budgeted_tile&);
  /// Marks the tile as being spilled.
  void leave(budgeted_tile&);
  /// Notes that the tile's bytes are on disk, and frees its room.
  void has_left(budgeted_tile&);
  /// Notes that the tile could not be spilled: it remains here, as the first to be evicted again.
  void stay(budgeted_tile&);
  /// Notes that the tile has been read from disk.
  void has_come(budgeted_tile&);
  /// Notes that the tile could not be read from disk: its room is free again.
  void could_not_come(budgeted_tile&, std::exception_ptr why);
  /// Returns the tile's offset on disk; takes room there if it has none yet.
  std::uint64_t offset_on_disk(budgeted_tile&);
  /// Gives up the tile's room on disk; calls f(offset, bytes) if it had any.
  template <class F>
  void give_up_on_disk(budgeted_tile& p, F&& f) {
    if (p.offset < 0) return;
    const auto at = static_cast<std::uint64_t>(std::exchange(p.offset, -1));
    p.saved = false;
    disk_.give(at, bytes_of(p));
    f(at, bytes_of(p));
  }

  // ---- one array ----------------------------------------------------------------------------------------------------
  /// Counts an array's room as going() when its last handle is gone: its room will be free once its last task has
  /// ended.
  void dropped(const array_core& a) {
    if (a.budgeted) going_ += a.budgeted->bytes;
  }
  /// Removes an array that is about to be freed; none of its tiles may be held or moving. Calls f(offset, bytes) for
  /// each tile that has room on disk.
  template <class F>
  void forget(array_core& a, F&& f) {
    if (!a.budgeted) return;
    for (std::uint32_t t = 0; t < a.tile_count; ++t) {
      budgeted_tile& p = a.budgeted->tiles[t];
      if (!p.array) continue;
      if (p.at == stage::here) {
        unlist(p);
        give_room(p);
      }
      give_up_on_disk(p, f);
    }
    a.budgeted.reset();
  }

  std::uint64_t limit() const { return limit_; }
  std::uint64_t used() const { return used_; }
  std::uint64_t free() const { return limit_ - used_; }
  /// Bytes in use of tiles that are being spilled.
  std::uint64_t leaving() const { return leaving_; }
  /// Bytes in use of arrays whose last handle is gone.
  std::uint64_t going() const { return going_; }
  std::uint64_t on_disk() const { return disk_.used(); }

 private:
  void add_needs(const task_record&);
  budgeted_tile& entry_of(array_core&, std::uint32_t tile);
  void take_room(budgeted_tile&);
  void give_room(budgeted_tile&);
  void list(budgeted_tile&);  // as the newest
  void unlist(budgeted_tile&);

  const std::uint64_t limit_;
  std::uint64_t used_ = 0, leaving_ = 0, going_ = 0, seen_ = 0;
  budgeted_tile* oldest_ = nullptr;
  budgeted_tile* newest_ = nullptr;
  std::vector<need> needs_;
  extents disk_;
};

/// Returns the host memory that the task's tiles take together, each counted once; a reduction counts by its result,
/// and only where that is more than all others. Any thread may call it: it reads constants only. It may stop adding
/// once the sum exceeds `enough`. `largest`: set to the array that takes most.
std::uint64_t host_bytes_of(const task_record&, std::uint64_t enough, const array_core*& largest);

}  // namespace troupe::logic
