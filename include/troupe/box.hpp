// What this file is for: extents, boxes and index spaces; the geometry that arrays, tiles and mappers share.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

namespace troupe {

/// A coordinate or a count of elements along one dimension. Signed, so that halos may reach below zero.
using index_t = std::int64_t;

/// Arrays, index spaces and views have between 1 and this many dimensions.
inline constexpr int rank_max = 4;

/// Sizes along each dimension, slowest first (row-major, as in C).
template <int N>
struct extent {
  index_t sizes[N]{};

  /// The size along dimension d.
  constexpr index_t& operator[](int d) { return sizes[d]; }
  constexpr const index_t& operator[](int d) const { return sizes[d]; }
  /// The N sizes.
  constexpr index_t* data() { return sizes; }
  constexpr const index_t* data() const { return sizes; }
  friend constexpr bool operator==(const extent&, const extent&) = default;
};

/// A half-open axis-aligned box `[lo, hi)`. Empty as soon as one `hi[d] <= lo[d]`.
template <int N>
struct box {
  std::array<index_t, N> lo{};  ///< the first coordinate along each dimension
  std::array<index_t, N> hi{};  ///< the coordinate behind the last one

  /// An empty box.
  constexpr box() = default;
  /// A box from its corners, each with one coordinate per dimension: `{{0, 0}, {4, 6}}`. Why not an aggregate: its
  /// braces might be left out, and `{0, 4, 0, 6}` would silently be the corners (0, 4) and (0, 6).
  constexpr box(const std::array<index_t, N>& lo_corner, const std::array<index_t, N>& hi_corner)
      : lo(lo_corner), hi(hi_corner) {}
  /// A box of one dimension: `{2, 5}`.
  template <std::convertible_to<index_t> From, std::convertible_to<index_t> To>
    requires(N == 1)
  constexpr box(From from, To to) : lo{static_cast<index_t>(from)}, hi{static_cast<index_t>(to)} {}

  /// Elements along dimension d.
  constexpr index_t size(int d) const { return hi[d] > lo[d] ? hi[d] - lo[d] : 0; }
  /// Number of elements.
  constexpr index_t volume() const {
    index_t v = 1;
    for (int d = 0; d < N; ++d) v *= size(d);
    return v;
  }
  /// True if the box has no elements.
  constexpr bool empty() const { return volume() == 0; }
  /// True if no corner of the other box lies outside this one; an empty box is taken by its corners.
  constexpr bool contains(const box& other) const {
    for (int d = 0; d < N; ++d)
      if (other.lo[d] < lo[d] || other.hi[d] > hi[d]) return false;
    return true;
  }
  /// True if the point is an element of the box.
  constexpr bool contains(const std::array<index_t, N>& point) const {
    for (int d = 0; d < N; ++d)
      if (point[d] < lo[d] || point[d] >= hi[d]) return false;
    return true;
  }
  /// The elements that are in both boxes.
  friend constexpr box intersect(const box& a, const box& b) {
    box r;
    for (int d = 0; d < N; ++d) {
      r.lo[d] = std::max(a.lo[d], b.lo[d]);
      r.hi[d] = std::max(r.lo[d], std::min(a.hi[d], b.hi[d]));
    }
    return r;
  }
  friend constexpr bool operator==(const box&, const box&) = default;
};

/// The box of all indices of an array or index space of extent `e`.
template <int N>
constexpr box<N> whole(const extent<N>& e) {
  box<N> b;
  for (int d = 0; d < N; ++d) b.hi[d] = e[d];
  return b;
}

/// The text of a box as error messages show it: `[0,64) x [128,192)`.
template <int N>
std::string to_string(const box<N>& b) {
  std::string s;
  for (int d = 0; d < N; ++d) {
    s += d ? " x [" : "[";
    s += std::to_string(b.lo[d]);
    s += ',';
    s += std::to_string(b.hi[d]);
    s += ')';
  }
  return s;
}

/// Size of an array's tiles, the unit of placement, caching and migration. Tiles at the far edge may be smaller.
template <int N>
struct tile_shape {
  extent<N> size{};
};

/// Tiles of the given size: `tiles(512, 512)`. Each size must be at least 1.
template <class... I>
constexpr tile_shape<sizeof...(I)> tiles(I... sizes) {
  return {{{static_cast<index_t>(sizes)...}}};
}

/// The set of indices that `for_each` visits, with an optional chunk size (one chunk becomes one task).
template <int N>
struct index_space {
  extent<N> size{};
  /// Size of a chunk. Zeros: chosen by the runtime. It takes the tiles of the first array that the call writes or
  /// updates, if that has the extent of the index space and more than one tile; else an even split into about four
  /// chunks per thread, slowest dimensions first.
  extent<N> chunk{};

  /// Sets the size of a chunk: `grid(h, w).chunks(64, 64)`. A zero among others takes the whole extent of its
  /// dimension; negative sizes are `error(bad_argument)` at the call.
  template <class... I>
  constexpr index_space chunks(I... sizes) const {
    static_assert(sizeof...(I) == N, "chunks() takes one size per dimension of the index space");
    index_space copy = *this;
    copy.chunk = {{static_cast<index_t>(sizes)...}};
    return copy;
  }
};

/// An index space of the given extent: `grid(height, width)`.
template <class... I>
constexpr index_space<sizeof...(I)> grid(I... sizes) {
  return {{{static_cast<index_t>(sizes)...}}, {}};
}

}  // namespace troupe
