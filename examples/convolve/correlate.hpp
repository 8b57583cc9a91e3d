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

/// The same for accelerators, one work-item per sample: the function `correlate` in troupe's kernel dialect.
inline constexpr const char* correlate_text = R"(
GPU_KERNEL void correlate(GPU_IN(unsigned char, source), GPU_IN(float, filter), GPU_OUT(unsigned char, result)) {
  const long c = GPU_LO(result, 2) + GPU_GLOBAL_ID(0);
  const long x = GPU_LO(result, 1) + GPU_GLOBAL_ID(1);
  const long y = GPU_LO(result, 0) + GPU_GLOBAL_ID(2);
  if (c >= GPU_HI(result, 2) || x >= GPU_HI(result, 1) || y >= GPU_HI(result, 0)) return;
  const long height = GPU_SIZE(filter, 0), width = GPU_SIZE(filter, 1);
  if (c == 3) {
    GPU_AT3(result, y, x, c) = GPU_AT3(source, y, x, c);
    return;
  }
  float total = 0.0f;
  for (long ky = 0; ky < height; ++ky) {
    float row_total = 0.0f;
    for (long kx = 0; kx < width; ++kx)
      row_total += GPU_AT2(filter, ky, kx) * (float)GPU_AT3(source, y + ky - height / 2, x + kx - width / 2, c);
    total += row_total;
  }
  const float clamped = total > 0.0f ? (total < 255.0f ? total : 255.0f) : 0.0f;
  GPU_AT3(result, y, x, c) = (unsigned char)(clamped + 0.5f);
}
)";

}  // namespace convolution
