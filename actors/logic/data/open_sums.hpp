// What this file is for: reductions into tiles by parts of a graph: what of partials is filled, and added at home.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/access.hpp>

#include "actors/logic/data/box_list.hpp"

namespace troupe::logic {

/// The reductions of a recording that have not been added up, in its order. A tile has a home, one of the parts. Calls
/// of another part reduce into a partial of their own: it is filled before the first of them, and added at home before
/// the tile is used in another way. Parts are numbers. One thread.
class open_sums {
 public:
  using tile_key = std::pair<std::uint32_t, std::uint32_t>;  // array, tile
  /// A box of a part's partial that is to be added.
  struct addend {
    std::uint32_t part = 0;
    box4 where{};
    detail::combine_fn op = nullptr;
  };

  /// True if a sum of another operator is open for the tile: it is to be ended before one of `op` is opened.
  bool has_other(const tile_key&, detail::combine_fn op) const;
  /// Opens a sum into a tile whose home is `home`, unless one is open.
  void open(const tile_key&, detail::combine_fn op, std::uint32_t home);
  /// Returns the home of a tile with an open sum.
  std::uint32_t home_of(const tile_key& t) const { return sums_.at(t).home; }
  /// Returns which elements of the box are to be filled in the part's partial: those that were not, since the sum was
  /// opened. They count as filled from now on.
  box_list fill(const tile_key&, std::uint32_t part, const box4&);
  /// Some tile with an open sum; nothing: there is none.
  std::optional<tile_key> any() const { return sums_.empty() ? std::nullopt : std::optional(sums_.begin()->first); }
  /// The end of a tile's sum: where to add, and what.
  struct ended {
    std::uint32_t home = 0;
    std::vector<addend> addends;  ///< by part
  };
  /// Ends the sum into a tile; nothing: none is open.
  std::optional<ended> end(const tile_key&);

 private:
  struct sum {
    std::uint32_t home = 0;
    detail::combine_fn op = nullptr;
    std::map<std::uint32_t, box_list> filled;  // by part: of its partial
  };
  std::map<tile_key, sum> sums_;
};

}  // namespace troupe::logic
