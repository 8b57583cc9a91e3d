// What this file is for: the arithmetic of mixed loads, the same for bodies and oracle; no two steps of it commute.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Points have four coordinates; those that an array does not have are 0. Boxes likewise, from 0 to 1 there, so that
// row-major order is the same whatever the rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mixed {

using word = std::uint64_t;
using index = std::int64_t;
using point = std::array<index, 4>;

/// A box of an array or of an index space, half open.
struct area {
  point lo{0, 0, 0, 0}, hi{1, 1, 1, 1};

  index size(std::size_t d) const { return hi[d] > lo[d] ? hi[d] - lo[d] : 0; }
  index volume() const { return size(0) * size(1) * size(2) * size(3); }
  bool contains(const point& p) const {
    for (std::size_t d = 0; d < 4; ++d)
      if (p[d] < lo[d] || p[d] >= hi[d]) return false;
    return true;
  }
  bool meets(const area& o) const {
    for (std::size_t d = 0; d < 4; ++d)
      if (hi[d] <= o.lo[d] || o.hi[d] <= lo[d]) return false;
    return true;
  }
  friend bool operator==(const area&, const area&) = default;
};

/// Calls f for every point, the last coordinate fastest.
template <class F>
void for_points(const area& a, const F& f) {
  point p;
  for (p[0] = a.lo[0]; p[0] < a.hi[0]; ++p[0])
    for (p[1] = a.lo[1]; p[1] < a.hi[1]; ++p[1])
      for (p[2] = a.lo[2]; p[2] < a.hi[2]; ++p[2])
        for (p[3] = a.lo[3]; p[3] < a.hi[3]; ++p[3]) f(p);
}

/// Splitmix64 of a state and what is added to it.
constexpr word mix(word h, word x) {
  x += h + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Returns what tells a point from others. Kernels as text compute the same (kernels.hpp).
constexpr word key(const point& p) {
  return static_cast<word>(p[0]) * 0x9e3779b185ebca87u + static_cast<word>(p[1]) * 0xc2b2ae3d27d4eb4fu +
         static_cast<word>(p[2]) * 0x165667b19e3779f9u + static_cast<word>(p[3]) * 0x27d4eb2f165667c5u;
}

/// A value out of [0, n).
constexpr index one_of(word h, index n) { return static_cast<index>(h % static_cast<word>(n)); }

enum class action : unsigned char { read, write, update, add, exclusive_or, maximum };

constexpr bool is_reduction(action a) { return a >= action::add; }

/// Returns what an action makes of an element.
constexpr word changed(action a, word before, word h, const point& p) {
  const word fresh = mix(h, key(p));
  switch (a) {
    case action::write:
      return fresh;
    case action::update:
      return before * (h | 1) + fresh;
    case action::add:
      return before + fresh;
    case action::exclusive_or:
      return before ^ fresh;
    case action::maximum:
      return before > fresh ? before : fresh;
    default:
      return before;
  }
}

/// The contents of a new array that is given contents.
constexpr word initial(word salt, const point& p) { return mix(salt, key(p)); }

}  // namespace mixed
