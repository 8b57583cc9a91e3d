// What this file is for: checks the tiled matrix product against three plain loops.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/linear_algebra.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "device_fixture.hpp"

#if defined(TROUPE_HAVE_BLAS)

namespace {

using namespace troupe;
using troupe::index_t;

struct product {
  index_t m, n, k;  // C is m x n, the sum runs over k
  index_t tile_m, tile_n, tile_k;
  double alpha, beta;
  int threads, core_groups;
};

std::string name_of(const testing::TestParamInfo<product>& info) {
  const product& p = info.param;
  return "m" + std::to_string(p.m) + "_n" + std::to_string(p.n) + "_k" + std::to_string(p.k) + "_tiles" +
         std::to_string(p.tile_m) + "x" + std::to_string(p.tile_n) + "x" + std::to_string(p.tile_k) + "_threads" +
         std::to_string(p.threads) + "_groups" + std::to_string(p.core_groups) + "_case" + std::to_string(info.index);
}

std::vector<double> random_numbers(index_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  std::vector<double> v(static_cast<std::size_t>(count));
  for (double& x : v) x = value(random);
  return v;
}

class gemm_of : public testing::TestWithParam<product> {};

void expect_three_plain_loops(runtime& rt, const product& p, const scope& where) {
  const auto a = random_numbers(p.m * p.k, 1), b = random_numbers(p.k * p.n, 2), c = random_numbers(p.m * p.n, 3);
  auto at = rt.adopt(a, {p.m, p.k}, tiles(p.tile_m, p.tile_k), "A");
  auto bt = rt.adopt(b, {p.k, p.n}, tiles(p.tile_k, p.tile_n), "B");
  auto ct = rt.adopt(c, {p.m, p.n}, tiles(p.tile_m, p.tile_n), "C");
  algorithms::gemm(rt, p.alpha, at, bt, p.beta, ct, where).get();
  const auto result = ct.read();
  const double tolerance = 4 * static_cast<double>(p.k + 2) * std::numeric_limits<double>::epsilon() *
                           (std::abs(p.alpha) + std::abs(p.beta) + 1);
  for (index_t i = 0; i < p.m; ++i)
    for (index_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (index_t k = 0; k < p.k; ++k)
        sum += a[static_cast<std::size_t>(i * p.k + k)] * b[static_cast<std::size_t>(k * p.n + j)];
      const double expected = p.alpha * sum + p.beta * c[static_cast<std::size_t>(i * p.n + j)];
      ASSERT_NEAR(result(i, j), expected, tolerance) << i << "," << j;
    }
}

TEST_P(gemm_of, two_matrices_equals_three_plain_loops) {
  const product& p = GetParam();
  runtime rt(options{.threads = p.threads, .core_groups = p.core_groups});
  expect_three_plain_loops(rt, p, {});
}

INSTANTIATE_TEST_SUITE_P(
    shapes, gemm_of,
    testing::Values(product{1, 1, 1, 1, 1, 1, 1, 0, 1, 1}, product{1, 1, 1, 4, 4, 4, 2, 3, 2, 1},
                    product{8, 8, 8, 8, 8, 8, 1, 0, 1, 1}, product{64, 64, 64, 16, 16, 16, 1, 1, 2, 1},
                    product{37, 41, 43, 10, 12, 7, -0.5, 2, 4, 2}, product{37, 41, 43, 10, 12, 7, 1, 0, 2, 2},
                    product{5, 90, 3, 2, 11, 1, 1, -1, 4, 1}, product{31, 29, 100, 64, 64, 9, 0, 0.5, 2, 1}),
    name_of);

TEST(gemm, with_beta_zero_does_not_need_c_to_be_written) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<double>({6, 6}, tiles(4, 4), 1.0, "A");
  auto c = rt.array<double>({6, 6}, tiles(4, 4), "C");
  algorithms::gemm(rt, 1.0, a, a, 0.0, c).get();
  const auto seen = c.read();
  for (index_t i = 0; i < 6; ++i)
    for (index_t j = 0; j < 6; ++j) EXPECT_EQ(seen(i, j), 6.0);
}

TEST(gemm, with_beta_zero_ignores_what_is_not_a_number_in_c) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<double>({3, 3}, tiles(2, 2), 1.0, "A");
  auto c = rt.filled<double>({3, 3}, tiles(2, 2), std::nan(""), "C");
  algorithms::gemm(rt, 2.0, a, a, 0.0, c).get();
  EXPECT_EQ(c.read()(2, 2), 6.0);
}

TEST(gemm, can_be_recorded_and_run_again) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<double>({5, 5}, tiles(2, 2), 1.0, "A");
  auto c = rt.filled<double>({5, 5}, tiles(2, 2), 0.0, "C");
  const graph step = rt.record([&](recorder& recorded) { algorithms::gemm(recorded, 1.0, a, a, 1.0, c); });
  for (int run = 1; run <= 10; ++run) {
    rt.run(step).get();
    ASSERT_EQ(c.read()(4, 4), 5.0 * run);
  }
}

class gemm_on : public troupe_test::device_fixture {};

TEST_P(gemm_on, equals_three_plain_loops) {
  std::uint64_t all = 0;
  for (const product& p : {product{1, 1, 1, 4, 4, 4, 2, 3, 0, 0}, product{37, 41, 43, 10, 12, 7, -0.5, 2, 0, 0},
                           product{40, 35, 50, 20, 35, 17, 1, 0, 0, 0}, product{31, 29, 70, 64, 64, 9, 0, 0.5, 0, 0}}) {
    expect_three_plain_loops(rt(), p, where());
    const auto count = [](index_t size, index_t tile) { return static_cast<std::uint64_t>((size + tile - 1) / tile); };
    all += count(p.m, p.tile_m) * count(p.n, p.tile_n) * (count(p.k, p.tile_k) + 1);  // and one that says it is done
  }
  expect_tasks_on_device(all);
}

TEST_P(gemm_on, ignores_what_is_not_a_number_where_beta_is_zero) {
  auto a = rt().filled<double>({19, 19}, tiles(10, 10), 1.0, "A");
  auto c = rt().filled<double>({19, 19}, tiles(10, 10), std::nan(""), "C");
  algorithms::gemm(rt(), 2.0, a, a, 0.0, c, where()).get();
  EXPECT_EQ(c.read()(18, 2), 38.0);
}

INSTANTIATE_TEST_SUITE_P(devices, gemm_on, troupe_test::every_place(), troupe_test::name_of_place);

TEST(gemm, refuses_matrices_that_do_not_fit_or_overlap) {
  runtime rt(options{.threads = 1});
  const auto refused = [&](const array<double, 2>& a, const array<double, 2>& b, const array<double, 2>& c) {
    try {
      algorithms::gemm(rt, 1.0, a, b, 0.0, c);
    } catch (const error& e) {
      return e.code() == errc::bad_argument;
    }
    return false;
  };
  auto square = rt.filled<double>({4, 4}, tiles(2, 2), 1.0);
  auto wide = rt.filled<double>({4, 6}, tiles(2, 2), 1.0);
  auto coarse = rt.filled<double>({4, 4}, tiles(4, 4), 1.0);
  auto result = rt.filled<double>({4, 4}, tiles(2, 2), 1.0);
  EXPECT_TRUE(refused(wide, square, result));
  EXPECT_TRUE(refused(square, coarse, result));
  EXPECT_TRUE(refused(square, square, wide));
  EXPECT_TRUE(refused(square, result, square));
  EXPECT_TRUE(refused(square, array<double, 2>(), result));
  EXPECT_FALSE(refused(square, square, result));
}

}  // namespace

#endif
