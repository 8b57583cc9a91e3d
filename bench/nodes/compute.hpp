// Work that is shared by the cores of a runtime, be they in one process or in two: a factorisation, a filter.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "contender.hpp"

#include <troupe/troupe.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace bench {

/// An image and what a filter of 9 x 9 makes of some of its pixels.
class filter_work {
 public:
  static constexpr troupe::index_t radius = 4, width = 2 * radius + 1, tile = 128;

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

/// `problem.factor` from `problem.matrix`; nothing without OpenBLAS.
std::optional<two_times> factor_on(troupe::runtime&, cholesky_problem&, std::size_t tile);
two_times filter_on(troupe::runtime&, filter_work&);

}  // namespace bench
