// What this file is for: the boxes of a tile that tasks have accessed in parts, and finding those that a box overlaps.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A few boxes are looked through one by one. More of them are put into cells along one dimension, that in which they
// begin at the most different places: a box lies in one cell of the level whose cells are about as long as the box, and
// so a box that is looked for meets only cells near it on each level. So a tile may be written in thousands of parts.
#pragma once

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "actors/logic/data/box4.hpp"
#include "actors/logic/data/ref_list.hpp"

namespace troupe::detail {

/// A sub-box access to a tile since its last whole-tile write. Write fragments of a tile are disjoint.
struct fragment {
  logic::box4 where;
  task_ref task;
  bool writes = false;
  std::exception_ptr poison;  // the writer failed
  std::uint64_t age = 0;      // the younger of two accesses has the higher one; that of a box that was cut stays
  std::uint64_t writer = 0;   // of a read: the age of the youngest writer that waits for it; 0: none does
  // Of a write: one line of writers that took each other's place, each all of the box of the one before; 0 once the box
  // was cut. At most one fragment is in a line. Of a read: the line of that writer.
  std::uint64_t line = 0;
};

/// The fragments of one tile, in no order. No function that is passed in may change the list.
class fragment_list {
 public:
  /// `tile`: the box that all fragments lie in.
  explicit fragment_list(const logic::box4& tile) : tile_(tile) {}

  std::size_t size() const { return count_; }
  /// Returns the age of the next access.
  std::uint64_t next_age() { return ++newest_; }
  void add(fragment);
  /// Calls `f(fragment)` for each.
  template <class F>
  void each(F&& f) {
    for (slot& s : slots_)
      if (s.used) f(s.what);
  }
  /// True if `f(fragment)` is true for one of them.
  template <class F>
  bool any(F&& f) const {
    for (const slot& s : slots_)
      if (s.used && f(s.what)) return true;
    return false;
  }
  /// Calls `f(fragment)` for each that overlaps the box.
  template <class F>
  void each_in(const logic::box4& where, F&& f) {
    if (!is_indexed()) {
      for (slot& s : slots_)
        if (s.used && logic::overlap(s.what.where, where)) f(s.what);
      return;
    }
    each_cell(where, [&](std::uint32_t cell) {
      for (std::uint32_t i = cells_[cell]; i != none; i = slots_[i].next)
        if (logic::overlap(slots_[i].what.where, where)) f(slots_[i].what);
    });
  }
  /// Removes those that overlap the box and for which `goes(fragment)`.
  template <class F>
  void remove_in(const logic::box4& where, F&& goes) {
    if (!is_indexed()) {
      for (std::uint32_t i = 0; i < slots_.size(); ++i)
        if (slots_[i].used && logic::overlap(slots_[i].what.where, where) && goes(slots_[i].what)) free_slot(i);
      return;
    }
    each_cell(where, [&](std::uint32_t cell) {
      remove_from(cell, [&](fragment& f) { return logic::overlap(f.where, where) && goes(f); });
    });
  }
  /// Removes those for which `goes(fragment)`, wherever they are.
  template <class F>
  void remove_if(F&& goes) {
    if (is_indexed()) {
      for (std::uint32_t cell = 0; cell < cells_.size(); ++cell) remove_from(cell, goes);
      return;
    }
    for (std::uint32_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].used && goes(slots_[i].what)) free_slot(i);
  }
  bool are_many() const { return count_ > few; }
  /// True now and then, where there are many: whoever looks at all of them then does so about once for each.
  bool is_time_to_look() {
    if (!are_many()) return false;
    if (++changes_ < looked_at_) return false;
    changes_ = 0;
    looked_at_ = count_;
    return true;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  // Number of fragments up to which there are no cells, and of cells of the lowest level.
  static constexpr std::size_t few = 32;
  static constexpr index_t cells_max = 1024;

  struct slot {
    fragment what;
    std::uint32_t next = none;  // in its cell, or of the unused ones
    bool used = false;
  };
  struct level {
    index_t length = 0;      // of a cell
    std::uint32_t from = 0;  // its first cell
    std::uint32_t cells = 0;
    std::uint32_t count = 0;  // of fragments
  };

  bool is_indexed() const { return !cells_.empty(); }
  void make_index();
  level& level_of(const logic::box4&);
  void enter(std::uint32_t slot);
  void free_slot(std::uint32_t i) {
    slots_[i].what = {};
    slots_[i].used = false;
    slots_[i].next = std::exchange(unused_, i);
    --count_;
  }
  // Calls `f(cell)` for the cells in which fragments that overlap the box may be.
  template <class F>
  void each_cell(const logic::box4& where, F&& f) {
    const index_t lo = where.lo[along_] - tile_.lo[along_], hi = where.hi[along_] - tile_.lo[along_];
    for (const level& l : levels_) {
      if (l.count == 0) continue;
      const index_t first = lo < l.length ? 0 : lo / l.length - 1;  // one that begins before may reach in here
      const index_t last = (hi - 1) / l.length;
      for (index_t c = first; c <= last && c < l.cells; ++c) f(l.from + static_cast<std::uint32_t>(c));
    }
  }
  template <class F>
  void remove_from(std::uint32_t cell, F&& goes) {
    for (std::uint32_t* at = &cells_[cell]; *at != none;) {
      const std::uint32_t i = *at;
      if (!goes(slots_[i].what)) {
        at = &slots_[i].next;
        continue;
      }
      --level_of(slots_[i].what.where).count;
      *at = slots_[i].next;
      free_slot(i);
    }
  }

  logic::box4 tile_;
  std::vector<slot> slots_;
  std::uint32_t unused_ = none;
  std::size_t count_ = 0, changes_ = 0, looked_at_ = few;
  std::uint64_t newest_ = 0;  // age
  int along_ = 0;
  std::vector<level> levels_;         // the shortest cells first
  std::vector<std::uint32_t> cells_;  // of all levels: the first slot of each; empty: there are few fragments
};

}  // namespace troupe::detail
