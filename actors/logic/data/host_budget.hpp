// What this file is for: which tiles have room in host memory under a budget, which of them may go, what is on disk.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by placement. A tile has room from the moment that it is reserved for a task, whether its bytes are there
// yet or not, so that the sum never exceeds the limit, whoever allocates them when. All tiles of a task are reserved at
// once or none: two tasks that each hold half of what they need would wait for each other for ever. What a task that
// was handed over uses is held; of the rest the one that was used longest ago goes first. Memory of the caller counts
// for nothing here.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/extents.hpp"

namespace troupe::logic {

using detail::array_core;
using detail::task_record;
using detail::tile_place;

class host_budget {
 public:
  using stage = tile_place::stage;

  /// One tile that a task touches.
  struct need {
    tile_place* place;
    bool contents;  // what it holds matters, else all of it is overwritten
    bool changed;
  };

  explicit host_budget(std::uint64_t limit) : limit_(limit) {}

  /// Each tile once; valid until the next call.
  std::span<const need> needs_of(const task_record&);
  static std::uint64_t bytes_of(const tile_place& p) { return p.array->bytes_of(p.tile); }
  /// Room that both tasks take together.
  std::uint64_t bytes_together(const task_record&, const task_record&);
  /// There is no room for it yet.
  static bool is_missing(const tile_place& p) { return p.at != stage::here && p.at != stage::coming; }
  static std::uint64_t missing(std::span<const need>);

  /// Everything is reserved and held; there must be room for what is missing. What must be read from disk is `coming`.
  void reserve(std::span<const need>);
  /// A task that held them has ended.
  void let_go(std::span<const need>);

  // ---- one tile -----------------------------------------------------------------------------------------------------
  /// Of those that are here and not held, the one that was used longest ago; `newer` leads on.
  tile_place* oldest() const { return oldest_; }
  /// Nothing would be lost: it was never filled, or the disk has the same.
  static bool is_spare(const tile_place&);
  void drop(tile_place&);  // a spare one
  void leave(tile_place&);
  /// It has left, to its place on disk.
  void has_left(tile_place&);
  /// It could not leave: it goes on being here, and goes first again.
  void stay(tile_place&);
  void has_come(tile_place&);
  void could_not_come(tile_place&, std::exception_ptr why);
  /// Room on disk for it, where it has none yet.
  std::uint64_t place_on_disk(tile_place&);
  /// Gives its place on disk up; calls f(offset, bytes) if it had one.
  template <class F>
  void give_up_on_disk(tile_place& p, F&& f) {
    if (p.offset < 0) return;
    const auto at = static_cast<std::uint64_t>(std::exchange(p.offset, -1));
    p.saved = false;
    disk_.give(at, bytes_of(p));
    f(at, bytes_of(p));
  }

  // ---- one array ----------------------------------------------------------------------------------------------------
  /// No handle is left: its room will be free once its last task has ended.
  void dropped(const array_core& a) {
    if (a.places) going_ += a.places->bytes;
  }
  /// It is to be freed; nothing of it is held or under way. Calls f(offset, bytes) for each of its places on disk.
  template <class F>
  void forget(array_core& a, F&& f) {
    if (!a.places) return;
    for (std::uint32_t t = 0; t < a.tile_count; ++t) {
      tile_place& p = a.places->tiles[t];
      if (!p.array) continue;
      if (p.at == stage::here) {
        unlist(p);
        give_room(p);
      }
      give_up_on_disk(p, f);
    }
    a.places.reset();
  }

  std::uint64_t limit() const { return limit_; }
  std::uint64_t used() const { return used_; }
  std::uint64_t free() const { return limit_ - used_; }
  /// Of what is in use: on its way to the disk; of arrays without handles.
  std::uint64_t leaving() const { return leaving_; }
  std::uint64_t going() const { return going_; }
  std::uint64_t on_disk() const { return disk_.used(); }

 private:
  void add_needs(const task_record&);
  tile_place& place_of(array_core&, std::uint32_t tile);
  void take_room(tile_place&);
  void give_room(tile_place&);
  void list(tile_place&);  // as the newest
  void unlist(tile_place&);

  const std::uint64_t limit_;
  std::uint64_t used_ = 0, leaving_ = 0, going_ = 0, seen_ = 0;
  tile_place* oldest_ = nullptr;
  tile_place* newest_ = nullptr;
  std::vector<need> needs_;
  extents disk_;
};

/// Host memory that the task's tiles take together, each counted once; of a reduction, those of its result where they
/// are more than the others. Any thread: looks at constants only. May stop adding up once it is beyond `enough`.
/// `largest`: the array that takes most.
std::uint64_t host_bytes_of(const task_record&, std::uint64_t enough, const array_core*& largest);

}  // namespace troupe::logic
