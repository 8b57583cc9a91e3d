// What this file is for: factors a matrix by tiles and reports the speed and the error.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

#include <troupe/troupe.hpp>

#include "algorithms/linear_algebra.hpp"
#include "examples/command_line.hpp"

namespace {

using troupe::box;
using troupe::index_t;
using matrix = troupe::array<double, 2>;

// The matrix to factor, given by a formula so that nobody has to keep it: symmetric with a dominant diagonal.
double element(index_t i, index_t j, index_t n) {
  if (i == j) return static_cast<double>(n);
  return 1.0 / static_cast<double>(1 + std::abs(i - j));
}

constexpr auto fill =
    troupe::kernel<troupe::out<double, 2>, index_t>("fill").on(troupe::cpu, [](troupe::view<double, 2> a, index_t n) {
      for (index_t i = a.lo(0); i < a.hi(0); ++i)
        for (index_t j = a.lo(1); j < a.hi(1); ++j) a(i, j) = i >= j ? element(i, j, n) : 0.0;
    });

// The squares of A - L L^T and of A over one tile.
struct squares {
  double operator()(double a, double b) const { return a + b; }
};
constexpr auto compare = troupe::kernel<troupe::in<double, 2>, index_t, troupe::red<double, 1>>("compare").on(
    troupe::cpu, [](troupe::view<const double, 2> difference, index_t n, troupe::view<double, 1> sums) {
      for (index_t i = difference.lo(0); i < difference.hi(0); ++i)
        for (index_t j = difference.lo(1); j < difference.hi(1); ++j) {
          const double expected = element(i, j, n), error = difference(i, j) - expected;
          sums(0) += error * error;
          sums(1) += expected * expected;
        }
    });

constexpr auto transpose = troupe::kernel<troupe::in<double, 2>, troupe::out<double, 2>>("transpose")
                               .on(troupe::cpu, [](troupe::view<const double, 2> from, troupe::view<double, 2> to) {
                                 for (index_t i = to.lo(0); i < to.hi(0); ++i)
                                   for (index_t j = to.lo(1); j < to.hi(1); ++j) to(i, j) = from(j, i);
                               });

// ||A - L L^T|| / ||A||, computed by tasks as well.
double residual(troupe::runtime& rt, const matrix& factor, index_t n, index_t tile) {
  auto transposed = rt.array<double>({n, n}, troupe::tiles(tile, tile), "L^T");
  auto product = rt.array<double>({n, n}, troupe::tiles(tile, tile), "L L^T");
  auto sums = rt.filled<double>({2}, troupe::tiles(2), 0.0, "sums");
  const auto mirrored = [](const box<2>& chunk, const troupe::extent<2>&) {
    return box<2>{{chunk.lo[1], chunk.lo[0]}, {chunk.hi[1], chunk.hi[0]}};
  };
  rt.for_each(troupe::grid(n, n), transpose, read(factor, mirrored), write(transposed));
  troupe::algorithms::gemm(rt, 1.0, factor, transposed, 0.0, product);
  rt.for_each(troupe::grid(n, n).chunks(tile, tile), compare, read(product), n, reduce(sums, squares{}, 0.0));
  const auto seen = sums.read();
  return std::sqrt(seen(0) / seen(1));
}

}  // namespace

int main(int count, char** arguments) try {
  const std::string usage =
      "usage: troupe-cholesky [N [TILE]] [--devices LIST]   both from 1 to 32768; 2048 and 128 unless given";
  if (examples::explains_itself(count, arguments, "troupe-cholesky", usage)) return 0;
  const auto asked = examples::read_command_line(count, arguments, {{1, 32768}, {1, 32768}}, usage);
  const index_t n = asked.numbers.empty() ? 2048 : asked.numbers[0];
  const index_t tile = asked.numbers.size() < 2 ? 128 : asked.numbers[1];

  troupe::runtime rt(asked.options());
  const troupe::algorithms::single_threaded_blas guard;  // kept over the timing, so that it sees no switch
  auto a = rt.array<double>({n, n}, troupe::tiles(tile, tile), "A");
  rt.for_each(troupe::grid(n, n), fill, write(a), n).get();

  const auto start = std::chrono::steady_clock::now();
  troupe::algorithms::cholesky(rt, a).get();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;

  const double operations = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / 3;
  std::printf("cholesky %lld x %lld, tiles of %lld: %.3f s, %.1f GF/s\n", static_cast<long long>(n),
              static_cast<long long>(n), static_cast<long long>(tile), took.count(), operations / took.count() / 1e9);
  examples::print_executors(rt, asked);
  const double difference = residual(rt, a, n, tile);
  const bool good = difference < 1e-13 * std::max(1.0, std::sqrt(static_cast<double>(n)));
  std::printf("||A - L L^T|| / ||A|| = %.2e: %s\n", difference, good ? "right" : "WRONG");
  return good ? 0 : 1;
} catch (...) {
  return examples::complain("troupe-cholesky");
}
