// What this file is for: the state behind an array handle: geometry, location of tiles' bytes, readers and writers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Geometry is constant. Executors install the pointers to bytes (atomic). Everything marked "placement" belongs to the
// thread that holds placement's turn.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <troupe/detail/engine.hpp>

#include "actors/logic/data/box4.hpp"
#include "actors/logic/data/view_bytes.hpp"
#include "actors/protocol/memory_space.hpp"

namespace troupe::detail {

/// Reference to a task; valid while the record still carries the same sequence number.
struct task_ref {
  task_record* task = nullptr;
  std::uint64_t sequence = 0;
};

/// List of references with room for one inside; its capacity is kept when it is cleared.
class ref_list {
 public:
  ref_list() = default;
  ref_list(const ref_list&) = delete;
  ref_list& operator=(const ref_list&) = delete;
  ~ref_list() { delete[] more_; }

  bool empty() const { return count_ == 0; }
  std::uint32_t size() const { return count_; }
  const task_ref* begin() const { return more_ ? more_ : &one_; }
  const task_ref* end() const { return begin() + count_; }
  void clear() { count_ = 0; }
  /// Adds a reference. Before the list grows, drops references for which `alive` is false, so that reads without writes
  /// stay bounded.
  template <class Alive>
  void add(task_ref r, Alive&& alive) {
    if (count_ == capacity_) make_room(alive);
    data()[count_++] = r;
  }
  void remove(const task_record* t) {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < count_; ++i)
      if (data()[i].task != t) data()[kept++] = data()[i];
    count_ = kept;
  }

 private:
  task_ref* data() { return more_ ? more_ : &one_; }
  template <class Alive>
  void make_room(Alive&& alive) {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < count_; ++i)
      if (alive(data()[i])) data()[kept++] = data()[i];
    count_ = kept;
    if (kept * 2 <= capacity_ && kept < capacity_) return;
    const std::uint32_t larger = capacity_ < 8 ? 8 : capacity_ * 2;
    auto* fresh = new task_ref[larger];
    std::memcpy(static_cast<void*>(fresh), data(), kept * sizeof(task_ref));
    delete[] more_;
    more_ = fresh;
    capacity_ = larger;
  }

  task_ref one_;
  task_ref* more_ = nullptr;
  std::uint32_t count_ = 0, capacity_ = 1;
};

/// A sub-box access to a tile since its last whole-tile write. Write fragments of a tile are disjoint.
struct fragment {
  logic::box4 where;
  task_ref task;
  bool writes = false;
  std::exception_ptr poison;  // the writer failed
};

/// Last writer of a tile and the readers since. Placement.
struct tile_history {
  task_ref writer;
  std::exception_ptr poison;  // the last writer failed
  bool valid = false;         // written as a whole; else see parts
  bool outside_read = false;  // recording only: read before any recorded write
  ref_list readers;
  std::unique_ptr<std::vector<fragment>> parts;  // null: whole-tile accesses only
};

/// An open reduction: private partials that no task has read through the array yet.
struct reduction {
  combine_fn combiner = nullptr;
  logic::box4 where;
  std::size_t element = 1;
  std::array<std::byte, fill_bytes_max> identity{};
  ref_list contributors;           // placement
  std::exception_ptr poison;       // placement: a contributor failed
  std::vector<logic::box4> fresh;  // placement, when they are combined: boxes that had not been written before

  std::mutex lock;               // guards the partials, which executors take and give back
  std::vector<view_bytes> idle;  // capacity is reserved when a partial is taken
  std::size_t taken = 0;
};

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

/// Link from a task record to the runtime that it was taken from and goes back to; outlives the runtime while handles
/// or futures do.
struct runtime_state;

struct tile_bytes {
  std::atomic<std::byte*> data{nullptr};
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
};

/// Locations of an array's tiles; allocated when the array is first used outside host memory.
struct array_coherence {
  explicit array_coherence(std::uint32_t count) : tiles(new coherence_entry[count]) {}
  std::unique_ptr<coherence_entry[]> tiles;
  id_set spaces;  // spaces that may hold copies
};

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

struct alignas(128) array_core {
  // Placement.
  std::int32_t users = 0;  // accesses of unfinished tasks
  bool dropped = false;    // no handle is left
  reduction* open = nullptr;
  tile_history single;                         // the states of a one-tile array
  std::unique_ptr<array_coherence> coherence;  // null: the array was never used outside host memory
  std::unique_ptr<budgeted_tiles> places;      // null: there is no budget, or the array was never used

  // Constant; on cache lines of its own, because callers read it while placement writes the members above.
  alignas(64) tile_history* states = nullptr;
  runtime_state* rt = nullptr;
  std::size_t tile_bytes_max = 0;  // size of a full tile
  std::uint32_t tile_count = 1;
  array_spec spec;
  std::array<index_t, rank_max> grid{1, 1, 1, 1};
  std::unique_ptr<tile_history[]> many;
  std::uint64_t id = 0;  // unique; ids are not reused

  // Executors.
  alignas(64) tile_bytes* bytes = nullptr;
  tile_bytes single_bytes;
  std::unique_ptr<tile_bytes[]> many_bytes;

  // Any thread.
  /// Counts the program's handles, plus kept_once for each reference that the runtime itself holds.
  static constexpr std::int64_t kept_once = std::int64_t{1} << 32;
  std::atomic<std::int64_t> handles{1};
  task_record* farewell = nullptr;  // ends with the array; set by the thread that drops the last handle
  /// Adds a reference of the runtime and returns true; false if no reference is left. See detail::let_go.
  bool keep() {
    std::int64_t n = handles.load(std::memory_order_relaxed);
    while (n != 0)
      if (handles.compare_exchange_weak(n, n + kept_once, std::memory_order_acq_rel)) return true;
    return false;
  }
  /// True if the bytes belong to the caller, which gets them back when the last handle is gone.
  bool is_borrowed() const { return spec.adopted && !spec.owner; }

  logic::box4 tile_box(std::uint32_t t) const {
    logic::box4 b;
    for (int d = rank_max - 1; d >= 0; --d) {
      std::uint32_t i = t;  // tiles are counted in 32 bits; along most dimensions there is one
      if (const auto n = static_cast<std::uint32_t>(grid[d]); n == 1) {
        i = 0;
      } else {
        i = t % n;
        t /= n;
      }
      b.lo[d] = static_cast<index_t>(i) * spec.tile[d];
      b.hi[d] = std::min(b.lo[d] + spec.tile[d], spec.size[d]);
    }
    return b;
  }
  std::uint32_t tile_at(const logic::point4& p) const {
    index_t t = 0;
    for (int d = 0; d < rank_max; ++d) t = t * grid[d] + p[d] / spec.tile[d];
    return static_cast<std::uint32_t>(t);
  }
  /// Calls `f(tile, box of the tile)` for every tile that the box touches. The box lies inside the array.
  template <class F>
  void each_tile(const logic::box4& b, F&& f) const {
    logic::point4 first, last;
    for (int d = 0; d < rank_max; ++d) {
      first[d] = b.lo[d] < spec.tile[d] ? 0 : b.lo[d] / spec.tile[d];  // most need no division
      last[d] = b.hi[d] <= spec.tile[d] ? 0 : (b.hi[d] - 1) / spec.tile[d];
    }
    logic::point4 at = first;
    for (;;) {
      index_t t = 0;
      logic::box4 tb;
      for (int d = 0; d < rank_max; ++d) {
        t = t * grid[d] + at[d];
        tb.lo[d] = at[d] * spec.tile[d];
        tb.hi[d] = std::min(tb.lo[d] + spec.tile[d], spec.size[d]);
      }
      f(static_cast<std::uint32_t>(t), tb);
      int d = rank_max - 1;
      while (d >= 0 && ++at[d] > last[d]) {
        at[d] = first[d];
        --d;
      }
      if (d < 0) return;
    }
  }
  std::size_t bytes_of(std::uint32_t t) const { return static_cast<std::size_t>(tile_box(t).volume()) * spec.element; }
  logic::box4 whole_box() const {
    logic::box4 b;
    b.hi = spec.size;
    return b;
  }
};

}  // namespace troupe::detail
