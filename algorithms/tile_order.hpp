// What this file is for: in which order tile products are spawned where an accelerator cannot hold all tiles at once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A device that is short of memory takes tasks in program order and evicts what is needed last (docs/gpu.md), so the
// order of the loops decides how often each tile travels.
#pragma once

#include <cstdint>

#include <troupe/troupe.hpp>

namespace troupe::algorithms {

/// The least memory that an accelerator of the scope has for tiles; 0 where there is none, or where that one holds all
/// of `needed` bytes.
std::uint64_t scarce_memory(const runtime&, const scope&, std::uint64_t needed);

/// Tiles of C, of a product of m x k by k x n tiles, whose sums are worked on together: `height` x `width` of them
/// stay, while rows and columns of the factors pass by. The whole where `room` tiles are enough for it.
struct product_block {
  index_t height, width;
};
product_block product_block_for(index_t m, index_t n, index_t k, index_t room);

/// Rows and columns of tiles in a block of a Cholesky factorisation by block rows, `n` x `n` tiles with room for
/// `room`.
index_t cholesky_block_for(index_t n, index_t room);

}  // namespace troupe::algorithms
