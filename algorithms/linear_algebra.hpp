// What this file is for: dense linear algebra in double on tiled arrays: Cholesky factorisation and matrix product.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Each function spawns one task per tile operation and returns at once; the future is done when all of them are. The
// tasks are ordered with everything else that touches the same arrays, so a program may fill a matrix by tasks, factor
// it and go on without waiting in between. Tiles are passed to OpenBLAS in place, where the array's tiles are.
//
// On accelerators the tile kernels are plain ones in the kernel dialect, in double: a device without doubles cannot run
// them. `where` says which executors may take part. Recorded graphs run on cores. The kernels are offered to other
// nodes.
//
// OpenBLAS has threads of its own, which would fight with the workers. Every call here holds a `single_threaded_blas`
// until its last task has finished. In a build without OpenBLAS all functions throw `error(not_supported)`.
#pragma once

#include <troupe/troupe.hpp>

namespace troupe::algorithms {

/// While at least one lives, OpenBLAS runs each call on the thread that makes it. The number of BLAS threads is a
/// property of the process: the first guard notes it and sets it to 1, the last one puts it back. Any thread may
/// create and destroy guards; nobody else may change the number meanwhile. Hold one around several calls to keep the
/// setting steady; it is not needed for one.
class single_threaded_blas {
 public:
  single_threaded_blas();
  ~single_threaded_blas();
  single_threaded_blas(const single_threaded_blas&) = delete;
  single_threaded_blas& operator=(const single_threaded_blas&) = delete;
};

/// The error of `cholesky` for a matrix that has no Cholesky factor. Thrown inside a task, so it arrives as the cause
/// of the future's `task_failed`: see `task_failed::rethrow_cause`.
class not_positive_definite : public error {
 public:
  not_positive_definite(index_t block, index_t row);
  /// The diagonal tile that could not be factored, counted from 0.
  index_t block() const noexcept { return block_; }
  /// The row of the matrix whose leading minor is not positive, counted from 0.
  index_t row() const noexcept { return row_; }

 private:
  index_t block_, row_;
};

/// Replaces the lower triangle of the symmetric positive definite matrix `a` by L with A = L L^T. The strictly upper
/// triangle is neither used nor changed within diagonal tiles, and need not be written elsewhere. `a` must be square,
/// not empty, and have square tiles (those at the far edge may be smaller): else `error(bad_argument)` at once.
/// Right-looking, after Buttari, Langou, Kurzak, Dongarra, "A class of parallel tiled linear algebra algorithms for
/// multicore architectures" (2009), with the solves of `triangular_solve.hpp`.
/// The future fails with `not_positive_definite` as its cause where there is no factor; `a` is then unreadable until it
/// is written again. Cores of this process look for that in every diagonal tile where the runtime has accelerators or
/// is a node.
future<void> cholesky(runtime&, const array<double, 2>& a, const scope& where = {});
/// The same as part of a recorded graph. BLAS stays single-threaded as long as the graph lives.
future<void> cholesky(recorder&, const array<double, 2>& a);

/// C = alpha A B + beta C. With beta = 0 what C holds is not read. The tiles must fit: those of A and C along the rows,
/// of A and B along the summation, of B and C along the columns; C must not overlap A or B; nothing may be empty: else
/// `error(bad_argument)` at once.
future<void> gemm(runtime&, double alpha, const array<double, 2>& a, const array<double, 2>& b, double beta,
                  const array<double, 2>& c, const scope& where = {});
/// The same as part of a recorded graph. BLAS stays single-threaded as long as the graph lives.
future<void> gemm(recorder&, double alpha, const array<double, 2>& a, const array<double, 2>& b, double beta,
                  const array<double, 2>& c);

}  // namespace troupe::algorithms
