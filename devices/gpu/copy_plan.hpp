// What this file is for: a strided copy of up to 4 dimensions as the fewest copies of rows, and of rows at a pitch.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <troupe/box.hpp>

#include "devices/accelerator.hpp"

namespace troupe::devices::gpu {

/// `rows` rows of `width` bytes each, at two pitches; repeated along the outer dimensions. All in bytes.
struct copy_plan {
  struct dimension {
    index_t count = 1, to = 0, from = 0;
  };
  index_t width = 0;  ///< 0: nothing to copy
  dimension rows;     ///< to and from are at least `width` where count > 1
  std::array<dimension, 4> outer;

  /// Calls `each(to, from)` with the offset of each block of rows.
  template <class Each>
  void for_each_block(Each each) const {
    for (index_t a = 0; a < outer[0].count; ++a)
      for (index_t b = 0; b < outer[1].count; ++b)
        for (index_t c = 0; c < outer[2].count; ++c)
          for (index_t d = 0; d < outer[3].count; ++d)
            each(a * outer[0].to + b * outer[1].to + c * outer[2].to + d * outer[3].to,
                 a * outer[0].from + b * outer[1].from + c * outer[2].from + d * outer[3].from);
  }
};

/// `pitch_max`: what the device takes as distance of two rows, in bytes.
inline copy_plan plan_copy(const strides& to, const strides& from, const std::array<index_t, rank_max>& count,
                           std::size_t element, index_t pitch_max) {
  copy_plan plan;
  const auto e = static_cast<index_t>(element);
  // Fastest first; neighbours that lie behind each other on both sides become one.
  std::array<copy_plan::dimension, rank_max + 1> dims{};
  dims[0] = {e, 1, 1};
  int n = 1;
  for (int d = rank_max - 1; d >= 0; --d) {
    if (count[d] <= 0) return plan;
    if (count[d] == 1) continue;
    auto& last = dims[n - 1];
    const copy_plan::dimension next{count[d], to[d] * e, from[d] * e};
    if (next.to == last.count * last.to && next.from == last.count * last.from)
      last.count *= next.count;
    else
      dims[n++] = next;
  }
  plan.width = dims[0].count;
  // The longest dimension that can be a pitch is left to the device, the others are looped over here.
  int rows = 0;
  const auto fits = [&](index_t pitch) { return pitch >= plan.width && pitch <= pitch_max; };
  for (int d = 1; d < n; ++d)
    if (fits(dims[d].to) && fits(dims[d].from) && (rows == 0 || dims[d].count > dims[rows].count)) rows = d;
  if (rows) plan.rows = dims[rows];
  for (int d = n - 1, at = 0; d > 0; --d)
    if (d != rows) plan.outer[at++] = dims[d];
  return plan;
}

}  // namespace troupe::devices::gpu
