// What this file is for: what the run of a recording does to a tile as a whole.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <troupe/access.hpp>

#include "actors/logic/data/box_list.hpp"

namespace troupe::logic {

/// What a recording's calls read and write of one tile, noted in program order.
class recorded_effect {
 public:
  /// The accesses of a run to a tile: those that read are ordered first, and overlap what is written where the run
  /// updates that.
  struct accesses {
    access_mode mode = access_mode::read;  ///< of the tile as a whole
    box_list read, written;                ///< both empty: it is accessed as a whole
  };

  /// Notes that a box is read, of which calls have written some elements before: `each_written(f)` calls `f(box)` for
  /// the boxes that they have written, until it returns false. Takes more than `boxes_max` boxes for the tile.
  template <class F>
  void read(const box4& where, const box4& tile, F&& each_written) {
    box_list more = without(box_list{where}, outside_);
    if (more.empty()) return;
    each_written([&](const box4& written) {
      more = without(more, written);
      return !more.empty() && more.size() <= boxes_max;
    });
    add(std::move(more), tile);
  }
  void read(const box4& where, const box4& tile) {
    read(where, tile, [](auto&&) {});
  }
  bool reads_outside() const { return !outside_.empty(); }
  /// Returns what is read and was not written before.
  const box_list& outside() const { return outside_; }

  /// Returns what a run does to the tile, of which its calls write these boxes. It is accessed as a whole if the run
  /// reads all or nothing of it, and writes all or nothing, and if there would be more than `boxes_max` boxes. A run
  /// that reads nothing which was there before has no such limit: to it there need not be anything.
  accesses of(box_list written, const box4& tile) const;

  static constexpr std::size_t boxes_max = 64;

 private:
  void add(box_list&& more, const box4& tile);

  box_list outside_;  // read, and not written before
};

}  // namespace troupe::logic
