// What this file is for: walks a box row by row.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/wire/rows.hpp"

#include <cstring>

#include "actors/memory/host_tiles.hpp"

namespace troupe::detail {

net::pieces rows_of(const raw_view& v, std::size_t element) {
  net::pieces rows;
  std::array<index_t, rank_max> size{};
  for (int d = 0; d < rank_max; ++d) {
    size[static_cast<std::size_t>(d)] = v.hi[d] - v.lo[d];
    if (v.hi[d] <= v.lo[d]) return rows;
  }
  // The inner dimensions that lie without gaps are one piece.
  int outer = rank_max;
  index_t run = 1;
  while (outer > 0 && (size[outer - 1] == 1 || v.stride[outer - 1] == run)) run *= size[--outer];
  std::array<index_t, rank_max> at{};
  for (;;) {
    index_t offset = 0;
    for (int d = 0; d < outer; ++d) offset += at[d] * v.stride[d];
    rows.emplace_back(v.data + static_cast<std::size_t>(offset) * element, static_cast<std::size_t>(run) * element);
    int d = outer - 1;
    while (d >= 0 && ++at[d] == size[d]) at[d--] = 0;
    if (d < 0) return rows;
  }
}

void copy_into(const net::pieces& rows, const std::byte* packed) {
  for (const auto& row : rows) {
    std::memcpy(row.data(), packed, row.size());
    packed += row.size();
  }
}

net::pieces rows_of(runtime_state& rt, array_core& a, std::uint32_t tile, const logic::box4& where, bool overwritten) {
  const logic::box4 all = a.tile_box(tile);
  raw_view v;
  v.data = host_tile(rt, a, tile, overwritten && where == all);
  v.stride = host_strides(a, tile);
  index_t offset = 0;
  for (int d = 0; d < rank_max; ++d) offset += (where.lo[d] - all.lo[d]) * v.stride[d];
  v.data += static_cast<std::size_t>(offset) * a.spec.element;
  v.lo = where.lo;
  v.hi = where.hi;
  return rows_of(v, a.spec.element);
}

}  // namespace troupe::detail
