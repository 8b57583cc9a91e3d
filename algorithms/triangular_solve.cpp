// What this file is for: inverting small triangles, and solving by halves.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/triangular_solve.hpp"

#if defined(TROUPE_HAVE_BLAS)

#include <algorithm>
#include <cstring>
#include <vector>

#include <cblas.h>
#include <lapacke.h>

namespace troupe::algorithms {

namespace {

constexpr int block = triangular_block;

CBLAS_LAYOUT order(layout l) { return l == layout::row_major ? CblasRowMajor : CblasColMajor; }

// Where element (i, j) is.
std::size_t at(layout l, int i, int j, int leading) {
  const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j), ld = static_cast<std::size_t>(leading);
  return l == layout::row_major ? a * ld + b : a + b * ld;
}

void solve(layout lay, int m, int n, const double* l, int ldl, const double* inverses, double* b, int ldb,
           double* room) {
  if (n <= block) {
    // The product cannot be made in place.
    const int lines = lay == layout::row_major ? m : n, length = lay == layout::row_major ? n : m;
    for (int i = 0; i < lines; ++i)
      std::memcpy(room + static_cast<std::size_t>(i) * static_cast<std::size_t>(length),
                  b + static_cast<std::size_t>(i) * static_cast<std::size_t>(ldb),
                  static_cast<std::size_t>(length) * sizeof(double));
    cblas_dgemm(order(lay), CblasNoTrans, CblasTrans, m, n, n, 1.0, room, length, inverses, block, 0.0, b, ldb);
    return;
  }
  const int half = (n / 2 + block - 1) / block * block;
  double* rest = b + at(lay, 0, half, ldb);
  solve(lay, m, half, l, ldl, inverses, b, ldb, room);
  cblas_dgemm(order(lay), CblasNoTrans, CblasTrans, m, n - half, half, -1.0, b, ldb, l + at(lay, half, 0, ldl), ldl,
              1.0, rest, ldb);
  solve(lay, m, n - half, l + at(lay, half, half, ldl), ldl, inverses + static_cast<std::size_t>(half) * block, rest,
        ldb, room);
}

}  // namespace

void invert_diagonal_blocks(layout lay, int n, const double* l, int ldl, double* inverses) {
  // To LAPACK, whose own layout is column-major, a row-major lower triangle is an upper one.
  const char triangle = lay == layout::row_major ? 'U' : 'L';
  for (int first = 0; first < n; first += block) {
    const int size = std::min(block, n - first);
    double* out = inverses + static_cast<std::size_t>(first) * block;
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) out[at(lay, i, j, block)] = j <= i ? l[at(lay, first + i, first + j, ldl)] : 0.0;
    LAPACKE_dtrtri_work(LAPACK_COL_MAJOR, triangle, 'N', size, out, block);
  }
}

void solve_with_inverses(layout lay, int m, int n, const double* l, int ldl, const double* inverses, double* b,
                         int ldb) {
  thread_local std::vector<double> room;
  room.resize(std::max(room.size(), static_cast<std::size_t>(m) * block));
  solve(lay, m, n, l, ldl, inverses, b, ldb, room.data());
}

}  // namespace troupe::algorithms

#endif
