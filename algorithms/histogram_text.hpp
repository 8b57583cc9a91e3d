// What this file is for: the counting kernels of the histograms for accelerators, as text in the kernel dialect.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A call that only reads and reduces is launched as one group. It counts in local memory, whose counters are of 32 bits:
// enough for tiles of less than 2^32 elements. Data of one dimension are a column to it, one element wide.
#pragma once

#include <troupe/kernel.hpp>

namespace troupe::algorithms::texts {

inline constexpr source count_bytes{R"(
GPU_KERNEL void count_bytes(GPU_IN(unsigned char, data), GPU_INOUT(unsigned long, bins)) {
  GPU_LOCAL_ARRAY(int, count, 256);
  const int me = GPU_LOCAL_ID(0);
  count[me] = 0;
  GPU_BARRIER();
  const long height = GPU_SIZE(data, 0), width = GPU_SIZE(data, 1) > 1 ? GPU_SIZE(data, 1) : 1;
  const long down = 256 / width, right = 256 % width;
  for (long y = me / width, x = me % width; y < height;) {
    GPU_ATOMIC_ADD_I32(&count[GPU_AT2(data, GPU_LO(data, 0) + y, GPU_LO(data, 1) + x)], 1);
    y += down;
    x += right;
    if (x >= width) {
      x -= width;
      ++y;
    }
  }
  GPU_BARRIER();
  GPU_AT1(bins, GPU_LO(bins, 0) + me) += (unsigned)count[me];
}
)",
                                    "count_bytes",
                                    {256, 1, 1}};

/// More than 2048 bins take the data several times.
inline constexpr source count_numbers{R"(
GPU_KERNEL void count_numbers(GPU_IN(double, data), const double low, const double high, GPU_INOUT(unsigned long, bins)) {
  GPU_LOCAL_ARRAY(int, count, 2048);
  const int me = GPU_LOCAL_ID(0);
  const long height = GPU_SIZE(data, 0), width = GPU_SIZE(data, 1) > 1 ? GPU_SIZE(data, 1) : 1;
  const long down = 256 / width, right = 256 % width, all = GPU_SIZE(bins, 0);
  const double scale = (double)all / (high - low);
  for (long first = 0; first < all; first += 2048) {
    const long some = all - first < 2048 ? all - first : 2048;
    for (long i = me; i < some; i += 256) count[i] = 0;
    GPU_BARRIER();
    for (long y = me / width, x = me % width; y < height;) {
      const double v = GPU_AT2(data, GPU_LO(data, 0) + y, GPU_LO(data, 1) + x);
      if (v >= low && v < high) {
        /* Rounding may lift a number just below the upper limit into a bin that is not there. */
        long bin = (long)floor((v - low) * scale);
        bin = (bin < all ? bin : all - 1) - first;
        if (bin >= 0 && bin < some) GPU_ATOMIC_ADD_I32(&count[bin], 1);
      }
      y += down;
      x += right;
      if (x >= width) {
        x -= width;
        ++y;
      }
    }
    GPU_BARRIER();
    for (long i = me; i < some; i += 256) GPU_AT1(bins, GPU_LO(bins, 0) + first + i) += (unsigned)count[i];
  }
}
)",
                                      "count_numbers",
                                      {256, 1, 1}};

inline constexpr source histograms[] = {count_bytes, count_numbers};

}  // namespace troupe::algorithms::texts
