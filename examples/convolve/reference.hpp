// What this file is for: the same filter computed plainly and serially, to judge the parallel one by.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "image.hpp"
#include "kernel_file.hpp"

namespace convolution {

/// How a result compares with the reference, sample by sample.
struct verdict {
  std::uint64_t samples = 0;
  std::uint64_t exact = 0;       ///< the same 8-bit level
  std::uint64_t borderline = 0;  ///< one level off, where the exact value is within `tolerance` of a rounding boundary
  std::uint64_t wrong = 0;       ///< everything else; alpha that changed counts here
  int difference_max = 0;        ///< in 8-bit levels, over all samples
  double tolerance = 0;          ///< of the value before rounding, in levels

  bool passed() const { return wrong == 0; }
};

/// Filters `before` in double precision, one pixel after the other, and compares with `after`.
///
/// Float and double may round to different levels only where the value lies on the fence. How far float can stray is
/// bounded: each row of the kernel is summed on its own and then the rows, so an output passes through at most
/// height + width + 2 roundings of 2^-24 each, of values up to 255 times the gain (Higham, Accuracy and Stability of
/// Numerical Algorithms, 2002, section 4.2). For a 31x31 average that is 0.00097 levels.
verdict compare_with_reference(const image& before, const weights& filter, const image& after);

}  // namespace convolution
