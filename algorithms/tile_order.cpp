// What this file is for: the sizes of blocks of tiles.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/tile_order.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::algorithms {

namespace {
// Tiles that come in for tasks ahead of those that run, beside what a block holds.
constexpr index_t ahead = 8;

index_t parts(index_t whole, index_t part) { return (whole + part - 1) / part; }
}  // namespace

std::uint64_t scarce_memory(const runtime& rt, const scope& where, std::uint64_t needed) {
  std::uint64_t least = 0;
  for (const executor_report& e : rt.executors(where))
    if (e.memory_bytes != 0 && (least == 0 || e.memory_bytes < least)) least = e.memory_bytes;
  return least < needed ? least : 0;
}

// A block of C reads its rows of A and its columns of B once. There has to be room for the block itself, one row of B
// and a tile of A.
product_block product_block_for(index_t m, index_t n, index_t k, index_t room) {
  if (m * n + (m + n) * k <= room) return {m, n};
  product_block best{1, 1};
  index_t least = -1;
  for (index_t h = 1; h <= m; ++h)
    for (index_t w = 1; w <= n && h * w + w + 1 + ahead <= room; ++w) {
      const index_t reads = m * parts(n, w) + n * parts(m, h);  // in columns of A, rows of B
      if (least >= 0 && reads >= least) continue;
      least = reads;
      best = {h, w};
    }
  return best;
}

// A block of p x p tiles and the two strips that pass by; of about equal size, since a narrow last one reads as much.
index_t cholesky_block_for(index_t n, index_t room) {
  const auto p = std::max(index_t{1}, static_cast<index_t>(std::sqrt(static_cast<double>(room))) - 1);
  return parts(n, parts(n, p));
}

}  // namespace troupe::algorithms
