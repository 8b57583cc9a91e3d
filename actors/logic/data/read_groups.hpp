// What this file is for: lists of tiles that many tasks read: such tasks are noted once, and not at each tile.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Where each of n tasks reads the same m tiles (steps that need all of the step before), program order has n times m
// edges, and as many entries of readers. A group has one task of the runtime's own instead, its gate, which waits for
// the m writers and is waited for by the n readers; and one list of these.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/ref_list.hpp"

namespace troupe::detail {

/// Tasks that have read the same tiles since these were written. With the turn.
struct read_group {
  std::vector<task_ref> writers;  // the last writers of the tiles
  task_ref gate;                  // waits for all of them; none: all had ended
  ref_list readers;
  std::uint32_t joined = 0;  // readers that there have been
  std::uint32_t inside = 0;  // histories that refer to the group
  bool complete = false;     // those of all its tiles do, and none has changed
  bool used_early = false;   // its arrays know that early tasks use them
  std::size_t list = 0;      // whose group it is; read_groups::none: of none any more
  std::uint64_t number = 0;  // of the group among all that were ever formed

  /// Notes that these are all writers.
  void note_writers();
  /// True if the referenced task is one of the writers.
  bool is_writer(const task_ref&) const;
  /// Returns the readers of another group that are not among the writers: who comes after the writers comes after all
  /// others of them. Those for which `is_counted` is false when the question is new may be left out.
  template <class Counts>
  std::span<const task_ref> beside_writers(const read_group& other, Counts&& is_counted) {
    if (compared_ == other.number && compared_joined_ == other.joined) return beside_;
    compared_ = other.number;
    compared_joined_ = other.joined;
    beside_.clear();
    for (const task_ref& r : other.readers)
      if (is_counted(r) && !is_writer(r)) beside_.push_back(r);
    return beside_;
  }
  /// Makes it an empty group again.
  void clear();

 private:
  std::vector<std::uint64_t> numbers_;  // of the writers, sorted
  // The last answer of `beside_writers`: the number of the group, how many readers it had had, and those found.
  std::uint64_t compared_ = 0;
  std::uint32_t compared_joined_ = 0;
  std::vector<task_ref> beside_;
};

/// The lists that tasks have read lately, and their groups. With the turn.
class read_groups {
 public:
  /// Fewest tiles for which a group is formed.
  static constexpr std::size_t tiles_min = 8;
  static constexpr std::size_t none = ~std::size_t{0};

  /// Returns the accesses from `first` on that may be of one list: those that read whole tiles, or one that reads all
  /// tiles of an array.
  static std::span<const access> reads_from(const task_record&, int first);
  /// Calls f(array, index of the tile) for each tile of such accesses.
  template <class F>
  static void each_tile(std::span<const access> reads, F&& f) {
    for (const access& x : reads) {
      if (!x.where) f(*x.array, x.tile);
      for (std::uint32_t i = 0; x.where && i < x.array->tile_count; ++i) f(*x.array, i);
    }
  }

  /// Reads of one list, and the group of those who read it; null: there is none that is complete.
  struct found {
    std::span<const access> reads;
    read_group* group;
  };
  /// Finds a list among these reads: one that is known, or what they have in common with those of one of the last tasks
  /// without one, which is known from then on. No reads: there is none.
  found find(std::span<const access> reads);
  /// Finds the list that was found last, if it begins at that access. No reads: it does not.
  found find_again(const task_record&, int first);
  /// True if the list that `find` has found last was read by others before, and groups of it have had enough readers.
  bool is_worth_forming() const { return worth_; }
  /// Returns an empty group of the list that `find` has found last; it is not complete.
  read_group& form();
  /// Has the history refer to the group.
  static void enter(tile_history&, read_group&);
  /// Has the history refer to no group any more, which is not complete from then on.
  void leave(tile_history&);

 private:
  static constexpr std::size_t lists_max = 8, unknown_max = 4;
  // Readers that a group must have had for the next one to be formed at once; reads without a group, at most, after
  // groups that had fewer.
  static constexpr std::uint32_t readers_min = 3, skipped_max = 64;

  // Tasks one after the other in which no known list was found, from which on only one of some is looked at.
  static constexpr std::uint32_t missed_max = 64, looked_at = 8;
  static constexpr std::uint32_t all_tiles = ~std::uint32_t{0};

  struct entry {
    const array_core* array;
    std::uint32_t tile;
    bool is(const access& x) const { return array == x.array && tile == (x.where ? all_tiles : x.tile); }
    bool is_read(const access& x) const { return array == x.array && tile == x.tile && is_tile_read(x); }
  };
  struct list {
    std::vector<entry> entries;
    read_group* group = nullptr;
    std::uint32_t skip = 0, skip_next = 1;  // reads to come without a group; the next time
  };

  static bool is_tile_read(const access& x) { return x.array && !x.where && x.mode == access_mode::read; }
  static bool is_many(std::span<const access> reads);
  static std::span<const access> part_of(std::span<const access> reads, const list&);
  static std::span<const access> common(std::span<const access> reads, const std::vector<entry>& others);
  found known(std::size_t at, std::span<const access> reads);
  void judge(list&);
  void give_back(read_group&);

  std::array<list, lists_max> lists_;
  std::array<std::vector<entry>, unknown_max> unknown_;  // the last reads among which there was none
  std::size_t unknown_next_ = 0;
  std::uint32_t missed_ = 0;
  std::size_t asked_ = 0, next_ = 0;  // the list that was found last; the one to be replaced next
  bool worth_ = false;
  std::uint64_t formed_ = 0;
  std::vector<std::unique_ptr<read_group>> all_;
  std::vector<read_group*> idle_;
};

}  // namespace troupe::detail
