// What this file is for: B L^-T for tiles, at the speed of matrix products.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// OpenBLAS's dtrsm reaches a sixth to a third of its dgemm's rate on tiles of 64 to 512. So small diagonal blocks of L
// are inverted once per tile, and every solve with that tile is matrix products only: recursive halving as in Elmroth,
// Gustavson, Jonsson, Kagstrom, "Recursive blocked algorithms and hybrid data structures for dense matrix library
// software" (2004), inverted diagonal blocks as in Du Croz and Higham, "Stability of methods for matrix inversion"
// (1992), section 2.3: the residual grows with the condition of the 32 x 32 diagonal blocks, not of L.
#pragma once

#include <cstddef>

namespace troupe::algorithms {

enum class layout { row_major, column_major };

/// Rows and columns of the diagonal blocks that are inverted.
inline constexpr int triangular_block = 32;

/// Inverts the diagonal blocks of the n x n lower triangular L (leading dimension ldl >= n). `inverses` has room for n
/// rows (row_major) or columns of `triangular_block` doubles; the block that begins at row b is written at
/// b * triangular_block, with that leading dimension. L's strictly upper triangle is not looked at. L must be regular.
/// Any thread; one thread per output.
void invert_diagonal_blocks(layout, int n, const double* l, int ldl, double* inverses);

/// B = B L^-T for an m x n matrix B (leading dimension ldb), with what `invert_diagonal_blocks` made of L.
/// Any thread; one thread per B. Uses m * triangular_block doubles of memory that the thread keeps.
void solve_with_inverses(layout, int m, int n, const double* l, int ldl, const double* inverses, double* b, int ldb);

}  // namespace troupe::algorithms
