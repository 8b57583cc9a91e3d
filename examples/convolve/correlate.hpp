// What this file is for: the arithmetic of one tile, the body of the kernel that troupe runs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/view.hpp>

namespace convolution {

/// Filters one tile. `source` is the tile with a frame of half the filter's size on every side, `result` the tile;
/// both are rows x columns x channels, 3 or 4 channels, of which the fourth (alpha) is copied. Sums are in float, each
/// row of the filter on its own and then the rows, which keeps the error of a 31x31 average below a thousandth of a
/// level; then rounded to the nearest of 0..255, halves up. Reads and writes nothing but its arguments.
void correlate(troupe::view<const std::uint8_t, 3> source, troupe::view<const float, 2> filter,
               troupe::view<std::uint8_t, 3> result);

}  // namespace convolution
