// What this file is for: where boxes lie in a device's memory, for the files of gpu_memory.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "actors/logic/data/array_coherence.hpp"
#include "actors/logic/data/region.hpp"

namespace troupe::detail {

using counts = std::array<index_t, rank_max>;

inline std::uint32_t known_version(const array_core& a, std::uint32_t tile) {
  return a.coherence->tiles[tile].version.load(std::memory_order_relaxed);
}
inline std::size_t bytes_in(const logic::box4& b, const array_core& a) {
  return static_cast<std::size_t>(b.volume()) * a.spec.element;
}
inline counts counts_of(const logic::box4& b) {
  counts n;
  for (int d = 0; d < rank_max; ++d) n[d] = b.size(d);
  return n;
}
/// Elements from the start of `whole` to the point `at`.
inline index_t offset_in(const logic::box4& whole, const counts& stride, const logic::point4& at) {
  index_t offset = 0;
  for (int d = 0; d < rank_max; ++d) offset += (at[d] - whole.lo[d]) * stride[d];
  return offset;
}

}  // namespace troupe::detail
