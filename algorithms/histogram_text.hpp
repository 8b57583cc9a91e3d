// What this file is for: the counting kernels of the histograms for accelerators, as text in the kernel dialect.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A call that only reads and reduces is launched by what it reads. A group takes 4096 elements, so most groups have
// nothing to do; it counts in local memory and adds what it has to the bins, whose 64 bits are two atomic sums of
// 32, the carry being the second. Data of one dimension are a column to it, one element wide. Work-items with nothing
// to count add 0 somewhere.
#pragma once

#include <troupe/kernel.hpp>

namespace troupe::algorithms::texts {

inline constexpr source count_bytes{R"(
GPU_KERNEL void count_bytes(GPU_IN(unsigned char, data), GPU_INOUT(unsigned long, bins)) {
  GPU_LOCAL_ARRAY(int, count, 256);
  const int me = GPU_LOCAL_ID(1) * GPU_LOCAL_SIZE(0) + GPU_LOCAL_ID(0);
  const long height = GPU_SIZE(data, 0), width = GPU_SIZE(data, 1) > 0 ? GPU_SIZE(data, 1) : 1;
  const long fast = GPU_SIZE(data, 1) > 0 ? width : height;
  const long across = (fast + GPU_LOCAL_SIZE(0) - 1) / GPU_LOCAL_SIZE(0);
  const long begin = (GPU_GROUP_ID(1) * across + GPU_GROUP_ID(0)) * 4096;
  const int rounds = begin < height * width ? 16 : 0;
  count[me] = 0;
  GPU_BARRIER();
  for (int k = 0; k < rounds; ++k) {
    const long i = begin + 256 * k + me, at = i < height * width ? i : begin, y = at / width;
    const int v = GPU_AT2(data, GPU_LO(data, 0) + y, GPU_LO(data, 1) + at - y * width);
    GPU_ATOMIC_ADD_I32(&count[i == at ? v : me], i == at ? 1 : 0);
  }
  GPU_BARRIER();
  const unsigned more = (unsigned)count[me];
  GPU_GLOBAL int* bin = (GPU_GLOBAL int*)&GPU_AT1(bins, GPU_LO(bins, 0) + me);
  if (more != 0 && (unsigned)GPU_ATOMIC_ADD_I32(bin, (int)more) + more < more) GPU_ATOMIC_ADD_I32(bin + 1, 1);
}
)",
                                    "count_bytes",
                                    {256, 1, 1}};

/// More than 2048 bins take the data several times.
inline constexpr source count_numbers{R"(
GPU_KERNEL void count_numbers(GPU_IN(double, data), const double low, const double high, GPU_INOUT(unsigned long, bins)) {
  GPU_LOCAL_ARRAY(int, count, 2048);
  const int me = GPU_LOCAL_ID(1) * GPU_LOCAL_SIZE(0) + GPU_LOCAL_ID(0);
  const long height = GPU_SIZE(data, 0), width = GPU_SIZE(data, 1) > 0 ? GPU_SIZE(data, 1) : 1;
  const long fast = GPU_SIZE(data, 1) > 0 ? width : height;
  const long across = (fast + GPU_LOCAL_SIZE(0) - 1) / GPU_LOCAL_SIZE(0);
  const long begin = (GPU_GROUP_ID(1) * across + GPU_GROUP_ID(0)) * 4096;
  const int rounds = begin < height * width ? 16 : 0;
  const long all = rounds > 0 ? GPU_SIZE(bins, 0) : 0;
  const double scale = (double)GPU_SIZE(bins, 0) / (high - low);
  for (long first = 0; first < all; first += 2048) {
    for (int k = 0; k < 8; ++k) count[256 * k + me] = 0;
    GPU_BARRIER();
    for (int k = 0; k < rounds; ++k) {
      const long i = begin + 256 * k + me, at = i < height * width ? i : begin, y = at / width;
      const double v = GPU_AT2(data, GPU_LO(data, 0) + y, GPU_LO(data, 1) + at - y * width);
      const int counts = i == at && v >= low && v < high;
      /* Rounding may lift a number just below the upper limit into a bin that is not there. */
      long bin = counts ? (long)floor((v - low) * scale) : 0;
      bin = (bin < all ? bin : all - 1) - first;
      const int here = counts && bin >= 0 && bin < 2048;
      GPU_ATOMIC_ADD_I32(&count[here ? bin : me], here);
    }
    GPU_BARRIER();
    for (int k = 0; k < 8; ++k) {
      const unsigned more = (unsigned)count[256 * k + me];
      if (more != 0) {
        GPU_GLOBAL int* bin = (GPU_GLOBAL int*)&GPU_AT1(bins, GPU_LO(bins, 0) + first + 256 * k + me);
        if ((unsigned)GPU_ATOMIC_ADD_I32(bin, (int)more) + more < more) GPU_ATOMIC_ADD_I32(bin + 1, 1);
      }
    }
  }
}
)",
                                      "count_numbers",
                                      {256, 1, 1}};

/// Two dimensions have square groups: vendors allow no more than 65535 of them one above the other.
constexpr source of_rank(source s, int rank) {
  if (rank == 2) s.group = {16, 16, 1};
  return s;
}

inline constexpr source histograms[] = {count_bytes, count_numbers};

}  // namespace troupe::algorithms::texts
