// What this file is for: checks the tiled Cholesky and the tiled product against LAPACK and plain loops.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/linear_algebra.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "device_fixture.hpp"

#if defined(TROUPE_HAVE_BLAS)
#include <cblas.h>
#include <lapacke.h>

namespace {

using namespace troupe;
using troupe::index_t;

using numbers = std::vector<double>;

std::size_t at(index_t i, index_t j, index_t columns) { return static_cast<std::size_t>(i * columns + j); }

numbers random_numbers(index_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  numbers v(static_cast<std::size_t>(count));
  for (double& x : v) x = value(random);
  return v;
}

// Symmetric with a dominant diagonal, so positive definite (Gershgorin).
numbers positive_definite(index_t n, unsigned seed) {
  numbers a = random_numbers(n * n, seed);
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < i; ++j) a[at(j, i, n)] = a[at(i, j, n)];
    a[at(i, i, n)] = static_cast<double>(n) + 1;
  }
  return a;
}

double norm(const numbers& a) {
  double sum = 0;
  for (double x : a) sum += x * x;
  return std::sqrt(sum);
}

// ||A - L L^T|| / ||A|| in the Frobenius norm, by plain loops on the lower triangle of `factor`.
double residual(const numbers& a, const numbers& factor, index_t n) {
  numbers difference = a;
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j)
      for (index_t k = 0; k <= std::min(i, j); ++k)
        difference[at(i, j, n)] -= factor[at(i, k, n)] * factor[at(j, k, n)];
  return norm(difference) / norm(a);
}

numbers contents(const array<double, 2>& a) {
  numbers v;
  const auto seen = a.read();
  for (index_t i = 0; i < a.size(0); ++i)
    for (index_t j = 0; j < a.size(1); ++j) v.push_back(seen(i, j));
  return v;
}

// A matrix in packed tiles, written by the host.
array<double, 2> packed(runtime& rt, const numbers& values, index_t rows, index_t columns, index_t tile_rows,
                        index_t tile_columns, const std::string& name) {
  const index_t size[2] = {rows, columns};
  auto a = rt.array<double>(size, tiles(tile_rows, tile_columns), name);
  auto seen = a.write();
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) seen(i, j) = values[at(i, j, columns)];
  return a;
}

constexpr double epsilon = std::numeric_limits<double>::epsilon();

struct shape {
  index_t n, tile;
  int threads, core_groups;
};

std::string name_of(const testing::TestParamInfo<shape>& info) {
  const shape& s = info.param;
  return "n" + std::to_string(s.n) + "_tile" + std::to_string(s.tile) + "_threads" + std::to_string(s.threads) +
         "_groups" + std::to_string(s.core_groups);
}

options workers(const shape& s) { return {.threads = s.threads, .core_groups = s.core_groups}; }

class cholesky_of : public testing::TestWithParam<shape> {};

TEST_P(cholesky_of, a_positive_definite_matrix_multiplies_back_and_equals_lapack) {
  const auto [n, tile, threads, groups] = GetParam();
  runtime rt(workers(GetParam()));
  const numbers original = positive_definite(n, 7);
  auto a = packed(rt, original, n, n, tile, tile, "A");
  algorithms::cholesky(rt, a).get();
  const numbers factor = contents(a);
  EXPECT_LT(residual(original, factor, n), 10 * static_cast<double>(n) * epsilon);

  numbers lapack = original;
  ASSERT_EQ(LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', static_cast<int>(n), lapack.data(), static_cast<int>(n)), 0);
  double largest = 0;
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j <= i; ++j) largest = std::max(largest, std::abs(factor[at(i, j, n)] - lapack[at(i, j, n)]));
  EXPECT_LT(largest, 10 * static_cast<double>(n) * epsilon * std::sqrt(static_cast<double>(n)));
}

TEST_P(cholesky_of, leaves_the_upper_triangle_alone) {
  const auto [n, tile, threads, groups] = GetParam();
  runtime rt(workers(GetParam()));
  numbers original = positive_definite(n, 8);
  for (index_t i = 0; i < n; ++i)
    for (index_t j = i + 1; j < n; ++j) original[at(i, j, n)] = 12345 + static_cast<double>(i * n + j);
  auto a = packed(rt, original, n, n, tile, tile, "A");
  algorithms::cholesky(rt, a).get();
  const numbers factor = contents(a);
  for (index_t i = 0; i < n; ++i)
    for (index_t j = i + 1; j < n; ++j) ASSERT_EQ(factor[at(i, j, n)], original[at(i, j, n)]) << i << "," << j;
}

INSTANTIATE_TEST_SUITE_P(shapes, cholesky_of,
                         testing::Values(shape{1, 1, 1, 1}, shape{1, 8, 1, 1}, shape{2, 1, 2, 1}, shape{16, 16, 1, 1},
                                         shape{64, 16, 2, 1}, shape{97, 13, 2, 1}, shape{97, 13, 4, 2},
                                         shape{100, 32, 1, 1}, shape{101, 128, 2, 2}, shape{127, 32, 4, 1},
                                         shape{60, 5, 2, 2}, shape{192, 48, 4, 2}),
                         name_of);

TEST(cholesky, works_on_a_matrix_that_was_adopted_without_copying) {
  runtime rt(options{.threads = 2});
  const index_t n = 50;
  const numbers original = positive_definite(n, 3);
  auto a = rt.adopt(original, {n, n}, tiles(16, 16), "A");
  algorithms::cholesky(rt, a).get();
  EXPECT_LT(residual(original, contents(a), n), 10 * n * epsilon);
}

TEST(cholesky, works_on_a_sub_array_that_cuts_through_tiles) {
  runtime rt(options{.threads = 2});
  const index_t n = 40, border = 5;
  const numbers original = positive_definite(n, 4);
  auto whole_matrix = rt.filled<double>({n + border, n + border}, tiles(16, 16), -1.0, "A");
  auto a = whole_matrix.sub({{border, border}, {n + border, n + border}});
  {
    auto seen = a.write();
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) seen(i, j) = original[at(i, j, n)];
  }
  algorithms::cholesky(rt, a).get();
  EXPECT_LT(residual(original, contents(a), n), 10 * n * epsilon);
  EXPECT_EQ(whole_matrix.read()(border - 1, n), -1.0);
}

TEST(cholesky, takes_its_place_between_tasks_that_fill_and_use_the_matrix) {
  runtime rt(options{.threads = 2});
  const index_t n = 45;
  const numbers original = positive_definite(n, 5);
  auto a = rt.array<double>({n, n}, tiles(10, 10), "A");
  rt.for_each(
      grid(n, n),
      [&original](view<double, 2> to) {
        for (index_t i = to.lo(0); i < to.hi(0); ++i)
          for (index_t j = to.lo(1); j < to.hi(1); ++j) to(i, j) = original[at(i, j, n)];
      },
      write(a));
  algorithms::cholesky(rt, a);
  auto determinant = rt.spawn(
      [](view<const double, 2> l) {
        double sum = 0;
        for (index_t i = 0; i < l.size(0); ++i) sum += 2 * std::log(l(i, i));
        return sum;
      },
      read(a));
  numbers lapack = original;
  LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', n, lapack.data(), n);
  double expected = 0;
  for (index_t i = 0; i < n; ++i) expected += 2 * std::log(lapack[at(i, i, n)]);
  EXPECT_NEAR(determinant.get(), expected, 1e-9);
}

TEST(cholesky, can_be_recorded_and_run_on_one_matrix_after_another) {
  runtime rt(options{.threads = 2});
  const index_t n = 37;
  auto a = packed(rt, positive_definite(n, 1), n, n, 8, 8, "A");
  const graph recorded = rt.record([&](recorder& calls) { algorithms::cholesky(calls, a); });
  for (unsigned seed = 10; seed < 15; ++seed) {
    const numbers original = positive_definite(n, seed);
    {
      auto seen = a.write();
      for (index_t i = 0; i < n; ++i)
        for (index_t j = 0; j < n; ++j) seen(i, j) = original[at(i, j, n)];
    }
    rt.run(recorded).get();
    EXPECT_LT(residual(original, contents(a), n), 10 * n * epsilon) << "seed " << seed;
  }
}

// Breaks the leading minor of one row and expects the failure to name the block that holds it.
void expect_not_positive_definite(index_t n, index_t tile, index_t bad_row, int threads) {
  runtime rt(options{.threads = threads});
  numbers values = positive_definite(n, 11);
  values[at(bad_row, bad_row, n)] = -1;
  auto a = packed(rt, values, n, n, tile, tile, "A");
  const future<void> done = algorithms::cholesky(rt, a);
  try {
    done.get();
    FAIL() << "a matrix that is not positive definite was factored";
  } catch (const task_failed& failure) {
    EXPECT_EQ(failure.root_task(), "potrf");
    EXPECT_NE(std::string(failure.what()).find("diagonal block " + std::to_string(bad_row / tile)), std::string::npos)
        << failure.what();
    try {
      failure.rethrow_cause();
      FAIL() << "the failure has no cause";
    } catch (const algorithms::not_positive_definite& cause) {
      EXPECT_EQ(cause.code(), errc::bad_argument);
      EXPECT_EQ(cause.block(), bad_row / tile);
      EXPECT_EQ(cause.row(), bad_row);
    }
  }
  // The runtime goes on, and so does the array once it is written again.
  const numbers good = positive_definite(n, 12);
  {
    auto seen = a.write();
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) seen(i, j) = good[at(i, j, n)];
  }
  algorithms::cholesky(rt, a).get();
  EXPECT_LT(residual(good, contents(a), n), 10 * static_cast<double>(n) * epsilon);
}

TEST(cholesky, of_an_indefinite_matrix_names_the_first_block) { expect_not_positive_definite(30, 8, 0, 2); }
TEST(cholesky, of_an_indefinite_matrix_names_a_block_in_the_middle) { expect_not_positive_definite(30, 8, 13, 2); }
TEST(cholesky, of_an_indefinite_matrix_names_the_last_smaller_block) { expect_not_positive_definite(30, 8, 29, 4); }
TEST(cholesky, of_an_indefinite_matrix_of_one_block_names_it) { expect_not_positive_definite(12, 12, 7, 1); }

TEST(cholesky, refuses_matrices_that_are_not_square_or_empty) {
  runtime rt(options{.threads = 1});
  const auto refused = [&](const array<double, 2>& a) {
    try {
      algorithms::cholesky(rt, a);
    } catch (const error& e) {
      return e.code() == errc::bad_argument;
    }
    return false;
  };
  EXPECT_TRUE(refused(rt.array<double>({4, 5}, tiles(2, 2))));
  EXPECT_TRUE(refused(rt.array<double>({4, 4}, tiles(2, 4))));
  EXPECT_TRUE(refused(array<double, 2>()));
}

// ---- on accelerators ------------------------------------------------------------------------------------------------

class cholesky_on : public troupe_test::device_fixture {};

// potrf, trsm, syrk and gemm of so many tiles a side.
std::uint64_t kernels_of(index_t side) {
  std::uint64_t count = 0;
  for (index_t left = side; left > 0; --left)
    count += static_cast<std::uint64_t>(1 + (left - 1) + (left - 1) * left / 2);
  return count;
}

TEST_P(cholesky_on, multiplies_back_and_leaves_the_upper_triangle_alone) {
  std::uint64_t all = 0;
  // Tiles below, between and above the kernels' blocks of 32, none of which divides the matrix, or there is one alone.
  for (const auto& [n, tile] : {std::pair<index_t, index_t>{97, 13}, {150, 40}, {33, 32}, {71, 71}, {1, 8}}) {
    SCOPED_TRACE(std::to_string(n) + " in tiles of " + std::to_string(tile));
    const numbers original = positive_definite(n, 7);
    numbers values = original;
    for (index_t i = 0; i < n; ++i)
      for (index_t j = i + 1; j < n; ++j) values[at(i, j, n)] = 12345 + static_cast<double>(i * n + j);
    auto a = packed(rt(), values, n, n, tile, tile, "A");
    algorithms::cholesky(rt(), a, where()).get();
    const numbers factor = contents(a);
    EXPECT_LT(residual(original, factor, n), 10 * static_cast<double>(n) * epsilon);
    for (index_t i = 0; i < n; ++i)
      for (index_t j = i + 1; j < n; ++j) ASSERT_EQ(factor[at(i, j, n)], values[at(i, j, n)]) << i << "," << j;
    all += kernels_of((n + tile - 1) / tile);
  }
  expect_tasks_on_device(all);
}

TEST_P(cholesky_on, names_the_first_row_that_has_no_factor) {
  for (const auto& [n, tile, bad] :
       {std::tuple<index_t, index_t, index_t>{30, 8, 0}, {30, 8, 13}, {90, 40, 77}, {30, 8, 29}, {12, 12, 7}}) {
    SCOPED_TRACE("row " + std::to_string(bad) + " of " + std::to_string(n));
    numbers values = positive_definite(n, 11);
    values[at(bad, bad, n)] = -1;
    auto a = packed(rt(), values, n, n, tile, tile, "A");
    const future<void> done = algorithms::cholesky(rt(), a, where());
    try {
      done.get();
      FAIL() << "a matrix that is not positive definite was factored";
    } catch (const task_failed& failure) {
      EXPECT_EQ(failure.root_task(), "potrf check");
      try {
        failure.rethrow_cause();
      } catch (const algorithms::not_positive_definite& cause) {
        EXPECT_EQ(cause.block(), bad / tile);
        EXPECT_EQ(cause.row(), bad);
      }
    }
    EXPECT_THROW(contents(a), task_failed);
    const numbers good = positive_definite(n, 12);
    {
      auto seen = a.write();
      for (index_t i = 0; i < n; ++i)
        for (index_t j = 0; j < n; ++j) seen(i, j) = good[at(i, j, n)];
    }
    algorithms::cholesky(rt(), a, where()).get();
    EXPECT_LT(residual(good, contents(a), n), 10 * static_cast<double>(n) * epsilon);
  }
}

INSTANTIATE_TEST_SUITE_P(devices, cholesky_on, troupe_test::every_place(), troupe_test::name_of_place);

// ---- BLAS -----------------------------------------------------------------------------------------------------------

TEST(single_threaded_blas, sets_one_thread_while_a_guard_lives_and_restores_the_number_after_the_last) {
  openblas_set_num_threads(2);
  {
    const algorithms::single_threaded_blas outer;
    EXPECT_EQ(openblas_get_num_threads(), 1);
    {
      const algorithms::single_threaded_blas inner;
      EXPECT_EQ(openblas_get_num_threads(), 1);
    }
    EXPECT_EQ(openblas_get_num_threads(), 1);
  }
  EXPECT_EQ(openblas_get_num_threads(), 2);
}

TEST(single_threaded_blas, is_restored_once_a_factorisation_is_over) {
  openblas_set_num_threads(2);
  {
    runtime rt(options{.threads = 2});
    auto a = packed(rt, positive_definite(20, 1), 20, 20, 5, 5, "A");
    algorithms::cholesky(rt, a).get();
  }
  EXPECT_EQ(openblas_get_num_threads(), 2);
}

}  // namespace

#else

TEST(linear_algebra, says_so_where_the_build_has_no_blas) {
  troupe::runtime rt(troupe::options{.threads = 1});
  auto a = rt.filled<double>({4, 4}, troupe::tiles(2, 2), 1.0);
  try {
    troupe::algorithms::cholesky(rt, a);
    FAIL() << "cholesky ran without BLAS";
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), troupe::errc::not_supported);
  }
}

#endif
