// What this file is for: the state behind an array handle: geometry, location of tiles' bytes, readers and writers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Geometry is constant. Executors install the pointers to bytes (atomic). Everything marked "placement" belongs to the
// thread that holds placement's turn, or the side turn of the side that has the array (placement/side_turns.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <troupe/detail/engine.hpp>

#include "actors/logic/data/box4.hpp"
#include "actors/logic/data/tile_history.hpp"

namespace troupe::detail {

struct array_coherence;
struct budgeted_tiles;
struct reduction;

/// Link from a task record to the runtime that it was taken from and goes back to; outlives the runtime while handles
/// or futures do.
struct runtime_state;

class tile_room;

/// The host bytes of a tile. Packed, or with room around them; then the two change together, while one task has the
/// tile to itself.
struct tile_bytes {
  std::atomic<std::byte*> data{nullptr};
  std::atomic<tile_room*> room{nullptr};  // owned, but by stand-ins
};

/// When tiles that get bytes get them in their places, one behind the other (memory/contiguous_tiles.hpp): never, once
/// a box had to be copied because some are elsewhere, or from the start.
enum class placing : unsigned char { never, if_missed, always };

struct alignas(128) array_core {
  array_core();
  ~array_core();
  array_core(const array_core&) = delete;
  array_core& operator=(const array_core&) = delete;

  // Placement.
  std::int32_t users = 0;   // accesses of unfinished tasks that are not early
  bool dropped = false;     // no handle is left
  bool used_early = false;  // by early tasks, which may be unfinished
  bool has_left = false;    // others than this machine's cores use it
  bool may_leave = false;   // a task has been ordered that uses it, and that others than this machine's cores may run
  std::atomic<std::uint64_t> side{0};  // who may order tasks that use it; see placement/side_turns.hpp. Any thread
  reduction* open = nullptr;
  tile_history single;                         // the states of a one-tile array
  std::unique_ptr<array_coherence> coherence;  // null: the array was never used outside host memory
  std::unique_ptr<budgeted_tiles> budgeted;    // null: there is no budget, or the array was never used

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

  // One piece of memory in which all tiles have their places; null: no tile is in its place.
  std::atomic<std::byte*> piece{nullptr};
  std::uint32_t in_place = 0;  // tiles that are, or are about to be; with a lock of `runtime_state::pieces`
  bool piece_mapped = false;   // it is not from an allocator; with the same lock
  std::atomic<placing> places{placing::never};

  // How far windows have reached beyond tiles so far, eight bits for each dimension: tiles that are overwritten get so
  // much room. None is made any more once others than this machine's cores use the array.
  std::atomic<std::uint32_t> halo{0};
  std::atomic<bool> stays_packed{true};

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
  /// Has tiles get bytes in their places only once that is missed: others than this machine's cores use the array.
  void place_if_missed() {
    auto from = placing::always;
    places.compare_exchange_strong(from, placing::if_missed, std::memory_order_relaxed);
  }
  /// Notes that a box had to be copied because tiles are elsewhere.
  void miss_places() {
    auto from = placing::if_missed;
    places.compare_exchange_strong(from, placing::always, std::memory_order_relaxed);
  }
  /// True if the bytes belong to the caller, which gets them back when the last handle is gone.
  bool is_borrowed() const { return spec.adopted && !spec.owner; }

  /// Notes that a task uses the array. An early one may retire without a turn, and is in no count.
  void note_use(bool early) {
    if (early)
      used_early = true;
    else
      ++users;
  }

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
