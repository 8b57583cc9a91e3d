// What this file is for: one step of each stencil for accelerators, as text in the kernel dialect.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/kernel.hpp>

namespace troupe::algorithms::texts {

inline constexpr source jacobi_step{R"(
GPU_KERNEL void jacobi_step(GPU_IN(double, from), GPU_OUT(double, to)) {
  const long x = GPU_LO(to, 1) + GPU_GLOBAL_ID(0), y = GPU_LO(to, 0) + GPU_GLOBAL_ID(1);
  if (y < GPU_HI(to, 0) && x < GPU_HI(to, 1))
    GPU_AT2(to, y, x) = 0.25 * ((GPU_AT2(from, y - 1, x) + GPU_AT2(from, y + 1, x)) +
                                (GPU_AT2(from, y, x - 1) + GPU_AT2(from, y, x + 1)));
}
)",
                                    "jacobi_step"};

inline constexpr source life_step{R"(
GPU_KERNEL void life_step(GPU_IN(unsigned char, from), GPU_OUT(unsigned char, to)) {
  const long x = GPU_LO(to, 1) + GPU_GLOBAL_ID(0), y = GPU_LO(to, 0) + GPU_GLOBAL_ID(1);
  if (y >= GPU_HI(to, 0) || x >= GPU_HI(to, 1)) return;
  int alive = 0; /* the cell itself is counted */
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) alive += GPU_AT2(from, y + dy, x + dx) != 0;
  GPU_AT2(to, y, x) = alive == 3 || (alive == 4 && GPU_AT2(from, y, x) != 0);
}
)",
                                  "life_step"};

inline constexpr source stencils[] = {jacobi_step, life_step};

}  // namespace troupe::algorithms::texts
