// What this file is for: the elements of an input that a result depends on, for each mapper; for bodies and oracle.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "arithmetic.hpp"

namespace mixed {

enum class edge : unsigned char { clip, clamp, wrap, fill };

/// The mappers of the library, and two functions of our own: `mirror` (along one dimension) and `project` (between
/// ranks).
struct mapping {
  enum class kind : unsigned char { none, one_to_one, all, slice, fixed, window, mirror, project };
  kind what = kind::none;
  int dim = 0;                 // slice, mirror
  point radius{0, 0, 0, 0};    // window
  edge border = edge::clip;    // window
  word constant = 0;           // window
  area where{};                // fixed
};

/// Along dimension d a projection follows the index space as far as it reaches, else takes all.
inline index projected(index i, index size) { return std::min(i, size - 1); }

/// Calls `look(q)` for each element of an array of the given size (rank `rank`) that index `p` (of `space_rank`
/// coordinates) depends on. A window's points may lie outside.
template <class Look>
void for_sources(const mapping& m, int rank, const point& size, int space_rank, const point& p, word salt,
                 const Look& look) {
  const auto dims = static_cast<std::size_t>(rank);
  const auto any_of = [&](const area& b, word k) {
    point q{};
    for (std::size_t d = 0; d < dims; ++d) q[d] = b.lo[d] + one_of(mix(mix(salt, k), key(p) + d), b.size(d));
    return q;
  };
  area everything;
  everything.hi = size;
  switch (m.what) {
    case mapping::kind::none:
    case mapping::kind::one_to_one:
      look(p);
      break;
    case mapping::kind::all:
      for (word k = 0; k < 3; ++k) look(any_of(everything, k));
      break;
    case mapping::kind::fixed:
      for (word k = 0; k < 3; ++k) look(any_of(m.where, k));
      break;
    case mapping::kind::slice: {
      const auto d = static_cast<std::size_t>(m.dim);
      point q = p;
      for (word k = 0; k < 6; ++k) {
        q[d] = one_of(mix(salt + k, key(p)), size[d]);
        look(q);
      }
      break;
    }
    case mapping::kind::window: {
      area around;
      index count = 1;
      for (std::size_t d = 0; d < dims; ++d) {
        around.lo[d] = p[d] - m.radius[d];
        around.hi[d] = p[d] + m.radius[d] + 1;
        count *= 2 * m.radius[d] + 1;
      }
      if (count <= 27) {
        for_points(around, look);
        break;
      }
      look(p);
      look(around.lo);
      point last{};
      for (std::size_t d = 0; d < dims; ++d) last[d] = around.hi[d] - 1;
      look(last);
      for (word k = 0; k < 4; ++k) look(any_of(around, k));
      break;
    }
    case mapping::kind::mirror: {
      const auto d = static_cast<std::size_t>(m.dim);
      point q = p;
      q[d] = size[d] - 1 - p[d];
      look(q);
      break;
    }
    case mapping::kind::project: {
      point q{};
      for (std::size_t d = 0; d < dims; ++d)
        q[d] = d < static_cast<std::size_t>(space_rank) ? projected(p[d], size[d])
                                                         : one_of(mix(salt, key(p) + d), size[d]);
      look(q);
      break;
    }
  }
}

/// The index whose result lies at point `t` of a target: mappers of what is written can be turned round.
inline point index_of_target(const mapping& m, const point& size, point t) {
  if (m.what == mapping::kind::mirror) {
    const auto d = static_cast<std::size_t>(m.dim);
    t[d] = size[d] - 1 - t[d];
  }
  return t;
}

}  // namespace mixed
