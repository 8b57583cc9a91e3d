// Work that is shared by the cores of a runtime, be they in one process or in two: a factorisation, a filter.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "contender.hpp"

#include <troupe/troupe.hpp>

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace bench {

/// An image and what a filter of 31 x 31, as examples/convolve has it, makes of some of its pixels.
class filter_work {
 public:
  static constexpr troupe::index_t radius = 15, width = 2 * radius + 1, tile = 96;

  explicit filter_work(troupe::index_t side);
  /// A new image; what an older one gave is wrong now.
  void renew();
  /// Throws `wrong_answer` unless pixels picked at random are the last image, filtered.
  void check() const;

  const troupe::index_t side;
  std::vector<float> image, weights, result;

 private:
  float scale_ = 1;
};

/// Nanoseconds that all processes of a contender have used of processors.
using processor_time = std::function<double()>;
/// Returns the nanoseconds that one process has used; 0: this one.
double processor_time_of(pid_t);

/// `problem.factor` from `problem.matrix`, by algorithms/linear_algebra.hpp; nothing without OpenBLAS.
/// `matrix`: made for the first turn and filled anew for each, so that memory on both sides has been used before.
std::optional<two_times> factor_on(troupe::runtime&, troupe::array<double, 2>& matrix, cholesky_problem&,
                                   std::size_t tile, const processor_time&);
two_times filter_on(troupe::runtime&, filter_work&, const processor_time&);

}  // namespace bench
