// The tiled Cholesky that every contender runs: its tiles, its four kernels, its task list and its check.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Right-looking, lower, double, after Buttari, Langou, Kurzak, Dongarra, "A class of parallel tiled linear algebra
// algorithms for multicore architectures" (2009). Tiles are contiguous and column-major, each with room behind it for
// inverted diagonal blocks; the kernels are OpenBLAS's, one thread each, and the solves those of troupe's algorithms,
// for every contender. Without TROUPE_BENCH_HAVE_BLAS only the types exist and no contender offers the workload.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "algorithms/triangular_solve.hpp"

#if defined(TROUPE_BENCH_HAVE_BLAS)
#include <cblas.h>
extern "C" void dpotrf_(const char* uplo, const int* n, double* a, const int* lda, int* info);
#endif

namespace bench {

/// A symmetric positive definite matrix and room for its factor, both n x n and column-major.
struct cholesky_problem {
  std::size_t n = 0;
  std::vector<double> matrix;
  std::vector<double> factor;  // only the lower triangle is looked at
};

/// A column-major matrix cut into contiguous tiles; only those on and below the diagonal are filled.
class tiled_matrix {
 public:
  tiled_matrix(std::size_t n, std::size_t tile_rows) : tile_rows_(tile_rows), tiles_(n / tile_rows) {
    storage_.reset(
        static_cast<double*>(::operator new(tiles_* tiles_* tile_size() * sizeof(double), std::align_val_t(64))));
  }
  /// Doubles from one tile to the next: the tile and the inverses behind it.
  [[nodiscard]] std::size_t tile_size() const {
    return tile_rows_ * (tile_rows_ + troupe::algorithms::triangular_block);
  }
  [[nodiscard]] double* operator()(std::size_t i, std::size_t j) const {
    return storage_.get() + (i + j * tiles_) * tile_size();
  }
  [[nodiscard]] std::size_t tiles() const { return tiles_; }
  void load(const cholesky_problem&);
  void store(cholesky_problem&) const;

 private:
  struct release {
    void operator()(double* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::size_t tile_rows_;
  std::size_t tiles_;
  std::unique_ptr<double, release> storage_;
};

/// Copies tile (i, j) out of a column-major matrix, or back.
void copy_tile(const double* matrix, std::size_t n, std::size_t i, std::size_t j, std::size_t rows, double* tile);
void copy_tile_back(const double* tile, std::size_t n, std::size_t i, std::size_t j, std::size_t rows, double* matrix);

cholesky_problem make_cholesky_problem(std::size_t n);

/// Throws `wrong_answer` unless |A x - L (L^T x)| is within rounding for a random x: order n^2 where the full residual
/// would cost more than the factorisation, and as sensitive to a wrong tile.
void check_factor(const cholesky_problem&);

enum class step { potrf, trsm, syrk, gemm };

/// A task: `out` is updated, `a` (and `b` for gemm) are read.
struct cholesky_task {
  step kind;
  std::size_t out_i, out_j, a_i, a_j, b_i, b_j;
  int priority;  // larger is more urgent: StarPU's own example's formula, distance to the end of the critical path
};

std::vector<cholesky_task> cholesky_tasks(std::size_t tiles);

#if defined(TROUPE_BENCH_HAVE_BLAS)
inline void run_step(step kind, std::size_t rows, double* out, const double* a, const double* b) {
  using namespace troupe::algorithms;
  const int n = static_cast<int>(rows);
  switch (kind) {
    case step::potrf: {
      int info = 0;
      dpotrf_("L", &n, out, &n, &info);
      invert_diagonal_blocks(layout::column_major, n, out, n, out + rows * rows);
      return;
    }
    case step::trsm:
      solve_with_inverses(layout::column_major, n, n, a, n, a + rows * rows, out, n);
      return;
    case step::syrk:
      cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, n, n, -1.0, a, n, 1.0, out, n);
      return;
    case step::gemm:
      cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, n, n, n, -1.0, a, n, b, n, 1.0, out, n);
      return;
  }
}
#endif

}  // namespace bench
