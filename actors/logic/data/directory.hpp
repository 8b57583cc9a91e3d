// What this file is for: in which memory the current bytes of tiles are, and what must move before a task may run.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by placement. A tile is current in host memory, or in exactly one other space (dirty there); further
// copies may be current too. Whole tiles are read and written in any space; parts of them and windows are read in any.
// Writes to parts of tiles, and reductions, go through host memory, so that two tasks may write parts of one tile in
// different spaces.
//
// A copy carries the version of its bytes; each write makes a new one. So a device need not be told that its copy is
// stale: it compares versions when it uses the copy. Only a dirty copy must be asked for, or given up by its device,
// before another space may write: by a transfer, on which the task waits like on any other task. Where devices reach
// each other's memory the copy is lent instead (protocol/peer_loan.hpp): then several spaces may have it, and still one
// is the dirty one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "actors/logic/data/array_coherence.hpp"
#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/region.hpp"

namespace troupe::logic {

using detail::access;
using detail::array_core;
using detail::coherence_entry;
using detail::host_space;
using detail::memory_space;
using detail::task_record;

using space_set = detail::id_set;

/// Has the array an account of its copies, which may be host memory's only.
inline void have_account(array_core& a) {
  if (!a.coherence) a.coherence = std::make_unique<detail::array_coherence>(a.tile_count);
}
/// Notes that others than this machine's cores use the array.
inline void leaves_host(array_core& a) {
  have_account(a);
  if (a.has_left) return;
  a.has_left = true;
  a.stays_packed.store(true, std::memory_order_relaxed);
  a.place_if_missed();
}

/// True if the access is one whole tile.
inline bool is_whole(const access& x) { return !x.where; }
/// True if a device uses its copies of the tiles for the access; else it needs the host's.
inline bool uses_copies(const access& x) { return is_whole(x) || x.mode == access_mode::read; }
inline bool writes(const access& x) { return x.mode == access_mode::write || x.mode == access_mode::update; }

/// Calls f(tile) for each tile that the access touches in memory; for none if it is a reduction, which has partials of
/// its own.
template <class F>
void each_tile_of(const access& x, F&& f) {
  if (is_whole(x)) {
    f(x.tile);
    return;
  }
  if (x.mode == access_mode::reduce) return;
  each_touched(*x.where, [&](const box4& b) { x.array->each_tile(b, [&](std::uint32_t t, const box4&) { f(t); }); });
}

/// Needs of a task on a tile whose only current copy is elsewhere. nothing: the task overwrites all of it. at_home: the
/// host's copy must be made current. anywhere: any current copy that the device can reach. only_read: the same, and the
/// task does not change it.
enum class wanted { nothing, at_home, anywhere, only_read };

/// Calls f(array, tile, home, wanted) for each tile whose only current copy is not usable by a task that is to run in
/// space `where`: the copy must be brought home first, lent by the device that has it, or given up.
template <class F>
void each_in_the_way(const task_record& t, memory_space where, F&& f) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || !x.array->coherence) continue;
    each_tile_of(x, [&](std::uint32_t tile) {
      coherence_entry& entry = x.array->coherence->tiles[tile];
      if (entry.dirty_in == host_space || (uses_copies(x) && entry.dirty_in == where)) return;
      f(*x.array, tile, entry,
        is_whole(x) && x.mode == access_mode::write ? wanted::nothing
        : where == host_space || !uses_copies(x)    ? wanted::at_home
        : x.mode == access_mode::read               ? wanted::only_read
                                                    : wanted::anywhere);
    });
  }
}

/// Returns how many elements of a tile a task reads, if it does nothing else with the tile and they are less than half
/// of it: these parts can be copied to host memory by themselves, for a task on cores or (`on_device`) for a device,
/// which makes no border from them. 0: the task needs the tile. Replaces `parts`, if it is not null, by them.
std::uint64_t parts_read(const task_record&, const array_core&, std::uint32_t tile, bool on_device,
                         std::vector<box4>* parts = nullptr);

/// Calls f(task_ref) for each task in flight that the task, which is to run in space `where`, must wait for. Parts of
/// one tile may be written and read at once, but not while a device copies the whole tile to get at a part. A node
/// (`on_node`) is sent that part alone.
template <class Alive, class F>
void each_part_clash(const task_record& t, memory_space where, bool on_node, Alive&& alive, F&& f) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || !x.array->coherence || is_whole(x)) continue;
    const bool copies = where != host_space && uses_copies(x);
    if (copies && on_node) continue;
    if (!copies && !writes(x)) continue;
    each_tile_of(x, [&](std::uint32_t tile) {
      const coherence_entry& entry = x.array->coherence->tiles[tile];
      for (const detail::task_ref& r : copies ? entry.part_writers : entry.part_readers)
        if (r.task != &t && alive(r)) f(r);
    });
  }
}
/// Notes that the task is in flight and accesses parts of tiles: see each_part_clash.
template <class Alive>
void note_parts(task_record& t, memory_space where, bool on_node, Alive&& alive) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || is_whole(x)) continue;
    const bool copies = where != host_space && uses_copies(x);
    if (copies && on_node) continue;
    if (!copies && !writes(x)) continue;
    have_account(*x.array);
    each_tile_of(x, [&](std::uint32_t tile) {
      coherence_entry& entry = x.array->coherence->tiles[tile];
      (copies ? entry.part_readers : entry.part_writers).add({&t, t.sequence}, alive);
    });
  }
}

/// Undoes note_parts for a task that comes back without having run; tasks that clash with it may run first now.
inline void forget_parts(const task_record& t) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || !x.array->coherence || is_whole(x)) continue;
    each_tile_of(x, [&](std::uint32_t tile) {
      coherence_entry& entry = x.array->coherence->tiles[tile];
      entry.part_readers.remove(&t);
      entry.part_writers.remove(&t);
    });
  }
}

/// Notes that others than this machine's cores may run the task: its arrays may leave host memory.
inline void note_may_leave(const task_record& t) {
  for (int i = 0; i < t.access_count; ++i)
    if (t.accesses[i].array) t.accesses[i].array->may_leave = true;
}
/// True if no array of the task may have left host memory, and none will while the task is under way: whatever uses a
/// tile elsewhere that this one changes comes after it, since it changes whole tiles only.
inline bool stays_at_home(const task_record& t) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (x.array && (x.array->may_leave || !uses_copies(x))) return false;
  }
  return true;
}

/// Returns the reason why an input of the task is lost; null if none is.
std::exception_ptr lost_input(const task_record&);
/// True if the task touches a tile whose only copy was lost: one that it was to overwrite.
bool touches_lost(const task_record&);
/// Sums bytes by the space that they come from: host memory, to which they may have to be brought first, or directly
/// another device's.
class sources {
 public:
  /// `reach`: the spaces that can be copied from directly; null: none. It must outlive this object.
  explicit sources(const space_set* reach = nullptr) : reach_(reach) {}
  /// Resets to the state after construction with `reach`.
  void restart(const space_set* reach) {
    reach_ = reach;
    from_host_ = changed_ = 0;
    count_ = 0;
  }
  bool reaches(memory_space s) const { return reach_ && reach_->contains(s); }
  void add(memory_space from, std::uint64_t bytes) {
    if (from == host_space) {
      from_host_ += bytes;
      return;
    }
    for (std::size_t i = 0; i < count_; ++i)
      if (others_[i].from == from || i + 1 == others_.size()) {  // further spaces are added to the last one
        others_[i].bytes += bytes;
        return;
      }
    others_[count_++] = {from, bytes};
  }
  /// Counts bytes of tiles that the task updates as a whole; they are among the bytes added.
  void add_changed(std::uint64_t bytes) { changed_ += bytes; }
  std::uint64_t changed() const { return changed_; }
  std::uint64_t from_host() const { return from_host_; }
  std::uint64_t direct() const {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < count_; ++i) bytes += others_[i].bytes;
    return bytes;
  }
  /// Calls f(space, bytes) for the host and each other space.
  template <class F>
  void each(F&& f) const {
    f(host_space, from_host_);
    for (std::size_t i = 0; i < count_; ++i) f(others_[i].from, others_[i].bytes);
  }

 private:
  struct part {
    memory_space from;
    std::uint64_t bytes;
  };
  const space_set* reach_;
  std::uint64_t from_host_ = 0, changed_ = 0;
  std::size_t count_ = 0;
  std::array<part, 8> others_;  // only the first count_ are used
};

/// Bytes that must be brought to `where` before the task may run there; adds where they come from.
std::uint64_t bytes_missing(const task_record&, memory_space where, sources&);
inline std::uint64_t bytes_missing(const task_record& t, memory_space where) {
  sources unused;
  return bytes_missing(t, where, unused);
}
/// Spaces other than the host's that have a copy of a tile that the task touches; the set may hold more.
space_set spaces_with_data_of(const task_record&);
/// Bytes that the task occupies in a memory other than the host's while it runs there.
std::uint64_t bytes_at_once(const task_record&);
/// Notes that the task goes to a space other than the host's, which then has copies of the tiles it reads. `parts`:
/// false: a device, which copies a whole tile where it needs much of it; true: a node, which gets only the parts that
/// it needs.
void note_sent(const task_record&, memory_space where, bool parts = false);
/// Notes that the task ran in the space and has ended, with or without an error.
void note_done(const task_record&, memory_space where);

}  // namespace troupe::logic
