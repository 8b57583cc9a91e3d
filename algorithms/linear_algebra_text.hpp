// What this file is for: the linear algebra's tile kernels for accelerators, as text in the kernel dialect.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A launch has a work-item for each element that is written. Where fewer groups work together on more, the first ones
// do and the others return at once. Local matrices of 32 x 32 lie in rows of 33, so that columns hit different banks.
#pragma once

#include <troupe/kernel.hpp>

namespace troupe::algorithms::texts {

/// Left-looking by blocks of 32 columns, in one group. A pivot that is not positive leaves 0 or NaN on the diagonal.
inline constexpr source potrf{R"(
GPU_KERNEL void potrf(GPU_INOUT(double, a), GPU_OUT(double, inverses), const long block, const long row,
                      const long later) {
  GPU_LOCAL_ARRAY(double, l, 1056); /* rows of the diagonal block, columns before it */
  GPU_LOCAL_ARRAY(double, x, 1056); /* 32 rows of the block column */
  GPU_LOCAL_ARRAY(double, v, 1056); /* the inverse of the diagonal block */
  if (GPU_GROUP_ID(0) != 0 || GPU_GROUP_ID(1) != 0) return;
  const int tx = GPU_LOCAL_ID(0), ty = GPU_LOCAL_ID(1), me = ty * 32 + tx;
  const long n = GPU_SIZE(a, 0), y0 = GPU_LO(a, 0), x0 = GPU_LO(a, 1);
  for (long b = 0; b < n; b += 32) {
    const int size = n - b < 32 ? (int)(n - b) : 32;
    for (long r = b; r < n; r += 32) {
      double s[4];
      for (int q = 0; q < 4; ++q) {
        const long i = r + ty + 8 * q;
        s[q] = i < n && b + tx <= i ? GPU_AT2(a, y0 + i, x0 + b + tx) : 0;
      }
      for (long k = 0; k < b; k += 32) {
        for (int i = ty; i < 32; i += 8) {
          l[i * 33 + tx] = b + i < n ? GPU_AT2(a, y0 + b + i, x0 + k + tx) : 0;
          x[i * 33 + tx] = r + i < n ? GPU_AT2(a, y0 + r + i, x0 + k + tx) : 0;
        }
        GPU_BARRIER();
        for (int c = 0; c < 32; ++c)
          for (int q = 0; q < 4; ++q) s[q] -= x[(ty + 8 * q) * 33 + c] * l[tx * 33 + c];
        GPU_BARRIER();
      }
      for (int q = 0; q < 4; ++q) x[(ty + 8 * q) * 33 + tx] = s[q];
      GPU_BARRIER();
      if (r == b) {
        for (int j = 0; j < size; ++j) {
          const double pivot = sqrt(x[j * 33 + j]);
          GPU_BARRIER();
          if (me == j) x[j * 33 + j] = pivot;
          if (me > j && me < size) x[me * 33 + j] /= pivot;
          GPU_BARRIER();
          for (int i = ty; i < 32; i += 8)
            if (i < size && tx > j && tx <= i) x[i * 33 + tx] -= x[i * 33 + j] * x[tx * 33 + j];
          GPU_BARRIER();
        }
        if (me < 32) /* a column each */
          for (int i = 0; i < 32; ++i) {
            double sum = i == me ? 1 : 0;
            for (int k = me; k < i; ++k) sum -= x[i * 33 + k] * v[k * 33 + me];
            v[i * 33 + me] = me <= i && i < size ? sum / x[i * 33 + i] : 0;
          }
        GPU_BARRIER();
        for (int i = ty; i < 32; i += 8) {
          if (i >= size) continue;
          if (tx <= i) GPU_AT2(a, y0 + b + i, x0 + b + tx) = x[i * 33 + tx];
          GPU_AT2(inverses, GPU_LO(inverses, 0) + b + i, GPU_LO(inverses, 1) + tx) = v[i * 33 + tx];
        }
      } else {
        for (int i = ty; i < 32; i += 8) {
          double sum = 0;
          for (int k = 0; k < 32; ++k) sum += x[i * 33 + k] * v[tx * 33 + k];
          if (r + i < n) GPU_AT2(a, y0 + r + i, x0 + b + tx) = sum;
        }
      }
      GPU_BARRIER();
    }
  }
}
)",
                              "potrf",
                              {32, 8, 1}};

/// a = a l^-T by blocks of 32 columns; a group has 8 rows and goes along them.
inline constexpr source trsm{R"(
GPU_KERNEL void trsm(GPU_IN(double, l), GPU_IN(double, inverses), GPU_INOUT(double, a)) {
  GPU_LOCAL_ARRAY(double, f, 1056); /* a block of l, or its inverse */
  GPU_LOCAL_ARRAY(double, x, 264);  /* 8 rows of a block column */
  if (GPU_GROUP_ID(0) != 0) return;
  const int tx = GPU_LOCAL_ID(0), ty = GPU_LOCAL_ID(1);
  const long m = GPU_SIZE(a, 0), n = GPU_SIZE(a, 1), i = GPU_GLOBAL_ID(1), y = GPU_LO(a, 0) + i, x0 = GPU_LO(a, 1);
  for (long b = 0; b < n; b += 32) {
    const int mine = i < m && b + tx < n;
    double s = mine ? GPU_AT2(a, y, x0 + b + tx) : 0;
    for (long k = 0; k < b; k += 32) {
      for (int c = ty; c < 32; c += 8)
        f[c * 33 + tx] = b + c < n ? GPU_AT2(l, GPU_LO(l, 0) + b + c, GPU_LO(l, 1) + k + tx) : 0;
      x[ty * 33 + tx] = i < m ? GPU_AT2(a, y, x0 + k + tx) : 0;
      GPU_BARRIER();
      for (int c = 0; c < 32; ++c) s -= x[ty * 33 + c] * f[tx * 33 + c];
      GPU_BARRIER();
    }
    for (int c = ty; c < 32; c += 8)
      f[c * 33 + tx] =
          b + c < n && tx <= c ? GPU_AT2(inverses, GPU_LO(inverses, 0) + b + c, GPU_LO(inverses, 1) + tx) : 0;
    x[ty * 33 + tx] = s;
    GPU_BARRIER();
    double sum = 0;
    for (int c = 0; c <= tx; ++c) sum += x[ty * 33 + c] * f[tx * 33 + c];
    if (mine) GPU_AT2(a, y, x0 + b + tx) = sum;
    GPU_BARRIER();
  }
}
)",
                             "trsm",
                             {32, 8, 1}};

/// c = c - a a^T, lower triangle. Groups above the diagonal have nothing to do.
inline constexpr source syrk{R"(
GPU_KERNEL void syrk(GPU_IN(double, a), GPU_INOUT(double, c)) {
  GPU_LOCAL_ARRAY(double, rows, 272); /* 16 x 16 in rows of 17 */
  GPU_LOCAL_ARRAY(double, columns, 272);
  if (GPU_GROUP_ID(0) > GPU_GROUP_ID(1)) return;
  const int tx = GPU_LOCAL_ID(0), ty = GPU_LOCAL_ID(1);
  const long n = GPU_SIZE(c, 0), depth = GPU_SIZE(a, 1), i = GPU_GLOBAL_ID(1), j = GPU_GLOBAL_ID(0);
  const long other = j - tx + ty; /* the row of a that this one fetches for the columns of c */
  double sum = 0;
  for (long k = 0; k < depth; k += 16) {
    rows[ty * 17 + tx] = i < n && k + tx < depth ? GPU_AT2(a, GPU_LO(a, 0) + i, GPU_LO(a, 1) + k + tx) : 0;
    columns[ty * 17 + tx] = other < n && k + tx < depth ? GPU_AT2(a, GPU_LO(a, 0) + other, GPU_LO(a, 1) + k + tx) : 0;
    GPU_BARRIER();
    for (int q = 0; q < 16; ++q) sum += rows[ty * 17 + q] * columns[tx * 17 + q];
    GPU_BARRIER();
  }
  if (i < n && j <= i) GPU_AT2(c, GPU_LO(c, 0) + i, GPU_LO(c, 1) + j) -= sum;
}
)",
                             "syrk",
                             {16, 16, 1}};

/// c = c - a b^T
inline constexpr source gemm_nt{R"(
GPU_KERNEL void gemm_nt(GPU_IN(double, a), GPU_IN(double, b), GPU_INOUT(double, c)) {
  GPU_LOCAL_ARRAY(double, rows, 272);
  GPU_LOCAL_ARRAY(double, columns, 272);
  const int tx = GPU_LOCAL_ID(0), ty = GPU_LOCAL_ID(1);
  const long m = GPU_SIZE(c, 0), n = GPU_SIZE(c, 1), depth = GPU_SIZE(a, 1), i = GPU_GLOBAL_ID(1), j = GPU_GLOBAL_ID(0);
  const long other = j - tx + ty;
  double sum = 0;
  for (long k = 0; k < depth; k += 16) {
    rows[ty * 17 + tx] = i < m && k + tx < depth ? GPU_AT2(a, GPU_LO(a, 0) + i, GPU_LO(a, 1) + k + tx) : 0;
    columns[ty * 17 + tx] = other < n && k + tx < depth ? GPU_AT2(b, GPU_LO(b, 0) + other, GPU_LO(b, 1) + k + tx) : 0;
    GPU_BARRIER();
    for (int q = 0; q < 16; ++q) sum += rows[ty * 17 + q] * columns[tx * 17 + q];
    GPU_BARRIER();
  }
  if (i < m && j < n) GPU_AT2(c, GPU_LO(c, 0) + i, GPU_LO(c, 1) + j) -= sum;
}
)",
                                "gemm_nt",
                                {16, 16, 1}};

/// Two entries: c = alpha a b + beta c, and c = alpha a b whatever c was.
inline constexpr const char* gemm_text = R"(
#define PRODUCT                                                                                                   \
  GPU_LOCAL_ARRAY(double, rows, 256);                                                                             \
  GPU_LOCAL_ARRAY(double, columns, 256);                                                                          \
  const int tx = GPU_LOCAL_ID(0), ty = GPU_LOCAL_ID(1);                                                           \
  const long m = GPU_SIZE(c, 0), n = GPU_SIZE(c, 1), depth = GPU_SIZE(a, 1);                                      \
  const long i = GPU_GLOBAL_ID(1), j = GPU_GLOBAL_ID(0);                                                          \
  double sum = 0;                                                                                                 \
  for (long k = 0; k < depth; k += 16) {                                                                          \
    rows[ty * 16 + tx] = i < m && k + tx < depth ? GPU_AT2(a, GPU_LO(a, 0) + i, GPU_LO(a, 1) + k + tx) : 0;       \
    columns[ty * 16 + tx] = k + ty < depth && j < n ? GPU_AT2(b, GPU_LO(b, 0) + k + ty, GPU_LO(b, 1) + j) : 0;    \
    GPU_BARRIER();                                                                                                \
    for (int q = 0; q < 16; ++q) sum += rows[ty * 16 + q] * columns[q * 16 + tx];                                 \
    GPU_BARRIER();                                                                                                \
  }
#define RESULT GPU_AT2(c, GPU_LO(c, 0) + i, GPU_LO(c, 1) + j)

GPU_KERNEL void gemm(GPU_IN(double, a), GPU_IN(double, b), const double alpha, const double beta,
                     GPU_INOUT(double, c)) {
  PRODUCT
  if (i < m && j < n) RESULT = alpha * sum + beta * RESULT;
}
GPU_KERNEL void gemm_first(GPU_IN(double, a), GPU_IN(double, b), const double alpha, GPU_OUT(double, c)) {
  PRODUCT
  if (i < m && j < n) RESULT = alpha * sum;
}
)";
inline constexpr source gemm{gemm_text, "gemm", {16, 16, 1}};
inline constexpr source gemm_first{gemm_text, "gemm_first", {16, 16, 1}};

/// Does nothing: the device that has the tile can say that it is done.
inline constexpr source touch{"GPU_KERNEL void touch(GPU_IN(double, tile)) {}", "touch", {1, 1, 1}};

inline constexpr source linear_algebra[] = {potrf, trsm, syrk, gemm_nt, gemm, gemm_first, touch};

}  // namespace troupe::algorithms::texts
