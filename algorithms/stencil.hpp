// What this file is for: stencils on 2-D arrays: Jacobi relaxation and Conway's Game of Life, with any border.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Each function spawns one task per tile and step and returns at once; steps of different tiles overlap where the data
// allows it. Reading the array that comes back waits for its last step. The border rule is applied by the window that
// each task reads through, so the kernels have no branches for edges. On accelerators the results are
// the same to the last bit. `where` says which executors may take part; the kernels are offered to other nodes.
#pragma once

#include <cstdint>

#include <troupe/troupe.hpp>

namespace troupe::algorithms {

/// Replaces every element by the mean of its four neighbours, `steps` times. `edge` says what lies beyond the array:
/// `border::wrap`, `clamp`, or `fill` with `outside`; others throw `error(bad_argument)`.
/// Works alternately in `start` and in a second array of the same size and tiles; the one with the result comes back
/// (`start` itself after an even number of steps). The other one holds the step before.
array<double, 2> jacobi(runtime&, const array<double, 2>& start, int steps, border edge, double outside = 0,
                        const scope& where = {});

/// Conway's Game of Life: cells that are not 0 are alive; the result has only 0 and 1. Arguments and result as for
/// `jacobi`; with `border::fill`, `outside` says whether the world beyond the edge is alive.
array<std::uint8_t, 2> life(runtime&, const array<std::uint8_t, 2>& start, int generations, border edge,
                            std::uint8_t outside = 0, const scope& where = {});

}  // namespace troupe::algorithms
