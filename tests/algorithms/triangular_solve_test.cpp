// What this file is for: B L^-T by inverted diagonal blocks, against multiplying back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/triangular_solve.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#if defined(TROUPE_HAVE_BLAS)

namespace {

using namespace troupe::algorithms;

class solving : public testing::TestWithParam<std::tuple<layout, int, int>> {};

TEST_P(solving, multiplied_back_gives_what_was_there) {
  const auto [lay, m, n] = GetParam();
  const int pad = 3;
  const auto at = [lay = lay](int i, int j, int ld) {
    return static_cast<std::size_t>(lay == layout::row_major ? i * ld + j : i + j * ld);
  };
  const int ldl = n + pad, ldb = (lay == layout::row_major ? n : m) + pad;
  std::vector<double> l(static_cast<std::size_t>(ldl * ldl), 1e300);  // the upper triangle is poison
  for (int i = 0; i < n; ++i)
    for (int j = 0; j <= i; ++j) l[at(i, j, ldl)] = i == j ? 2.0 + i % 5 : ((i * 7 + j * 13) % 17 - 8) / 17.0 / n;
  std::vector<double> b(static_cast<std::size_t>(ldb * (std::max(m, n) + pad)), -7.0);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) b[at(i, j, ldb)] = ((i * 3 + j * 5) % 11 - 5) / 11.0;
  const auto before = b;
  std::vector<double> inverses(static_cast<std::size_t>(n + triangular_block) * triangular_block);
  invert_diagonal_blocks(lay, n, l.data(), ldl, inverses.data());
  solve_with_inverses(lay, m, n, l.data(), ldl, inverses.data(), b.data(), ldb);
  double worst = 0;
  auto outside = b;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int k = 0; k <= j; ++k) sum += b[at(i, k, ldb)] * l[at(j, k, ldl)];  // (X L^T)(i, j)
      worst = std::max(worst, std::abs(sum - before[at(i, j, ldb)]));
      outside[at(i, j, ldb)] = before[at(i, j, ldb)];
    }
  EXPECT_LT(worst, 1e-14 * n);
  EXPECT_EQ(outside, before) << "wrote beside the matrix";
}

INSTANTIATE_TEST_SUITE_P(shapes, solving,
                         testing::Combine(testing::Values(layout::row_major, layout::column_major),
                                          testing::Values(1, 5, 64, 97), testing::Values(1, 31, 32, 33, 64, 100, 200)),
                         [](const auto& shape) {
                           return std::string(std::get<0>(shape.param) == layout::row_major ? "rows" : "columns") +
                                  "_m" + std::to_string(std::get<1>(shape.param)) + "_n" +
                                  std::to_string(std::get<2>(shape.param));
                         });

}  // namespace

#endif
