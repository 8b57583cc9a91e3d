// Matrices, task list and check of the tiled Cholesky, and OpenBLAS's own dpotrf as a contender.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "cholesky.hpp"

#include "workloads.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <new>
#include <string>

#if defined(TROUPE_BENCH_HAVE_BLAS)
extern "C" void openblas_set_num_threads(int);
extern "C" char* openblas_get_config();
#endif

namespace bench {

void copy_tile(const double* matrix, std::size_t n, std::size_t i, std::size_t j, std::size_t rows, double* tile) {
  for (std::size_t column = 0; column < rows; ++column)
    std::copy_n(matrix + (j * rows + column) * n + i * rows, rows, tile + column * rows);
}

void copy_tile_back(const double* tile, std::size_t n, std::size_t i, std::size_t j, std::size_t rows, double* matrix) {
  for (std::size_t column = 0; column < rows; ++column)
    std::copy_n(tile + column * rows, rows, matrix + (j * rows + column) * n + i * rows);
}

void tiled_matrix::load(const cholesky_problem& problem) {
  for (std::size_t j = 0; j < tiles_; ++j)
    for (std::size_t i = j; i < tiles_; ++i)
      copy_tile(problem.matrix.data(), problem.n, i, j, tile_rows_, (*this)(i, j));
}

void tiled_matrix::store(cholesky_problem& problem) const {
  for (std::size_t j = 0; j < tiles_; ++j)
    for (std::size_t i = j; i < tiles_; ++i)
      copy_tile_back((*this)(i, j), problem.n, i, j, tile_rows_, problem.factor.data());
}

cholesky_problem make_cholesky_problem(std::size_t n) {
  cholesky_problem problem;
  problem.n = n;
  problem.matrix.resize(n * n);
  problem.factor.resize(n * n);
  lcg next;
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = j; i < n; ++i) {
      const double value = static_cast<double>(next()) / 65536.0;
      problem.matrix[j * n + i] = value;
      problem.matrix[i * n + j] = value;
    }
    problem.matrix[j * n + j] = static_cast<double>(n);  // diagonally dominant
  }
  return problem;
}

std::vector<cholesky_task> cholesky_tasks(std::size_t tiles) {
  std::vector<cholesky_task> tasks;
  const auto priority = [tiles](std::size_t k, std::size_t i, std::size_t j) {
    return static_cast<int>(2 * tiles) - static_cast<int>(k + i + j);
  };
  for (std::size_t k = 0; k < tiles; ++k) {
    tasks.push_back({step::potrf, k, k, 0, 0, 0, 0, priority(k, k, 0)});
    for (std::size_t i = k + 1; i < tiles; ++i) tasks.push_back({step::trsm, i, k, k, k, 0, 0, priority(k, k, i)});
    for (std::size_t j = k + 1; j < tiles; ++j) {
      tasks.push_back({step::syrk, j, j, j, k, 0, 0, priority(k, j, j)});
      for (std::size_t i = j + 1; i < tiles; ++i) tasks.push_back({step::gemm, i, j, i, k, j, k, priority(k, i, j)});
    }
  }
  return tasks;
}

#if defined(TROUPE_BENCH_HAVE_BLAS)

void check_factor(const cholesky_problem& problem) {
  const auto n = problem.n;
  const int size = static_cast<int>(n);
  std::vector<double> x(n);
  lcg next;
  for (auto& value : x) value = static_cast<double>(next()) / 65536.0 - 0.5;
  std::vector<double> product(n);
  cblas_dsymv(CblasColMajor, CblasLower, size, 1.0, problem.matrix.data(), size, x.data(), 1, 0.0, product.data(), 1);
  auto again = x;
  cblas_dtrmv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, size, problem.factor.data(), size, again.data(), 1);
  cblas_dtrmv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, size, problem.factor.data(), size, again.data(),
              1);
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i) worst = std::max(worst, std::abs(product[i] - again[i]));
  const double relative = worst / static_cast<double>(n);  // the largest |A| is n
  if (!(relative < 1e-13)) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "Cholesky: |A x - L (L^T x)| / |A| is %.2g", relative);
    throw wrong_answer(text.data());
  }
}

namespace {

class dpotrf final : public contender {
 public:
  std::string name() const override { return "dpotrf"; }
  std::string description() const override {
    return std::string("OpenBLAS's own dpotrf on all threads: ") + openblas_get_config();
  }
  void start(unsigned threads, purpose) override { threads_ = static_cast<int>(threads); }
  void stop() override {}

  std::optional<cost> cholesky(cholesky_problem& problem, std::size_t) override {
    problem.factor = problem.matrix;
    openblas_set_num_threads(threads_);
    const int n = static_cast<int>(problem.n);
    int info = 0;
    const meter clock;
    dpotrf_("L", &n, problem.factor.data(), &n, &info);
    const auto spent = clock.stop();
    openblas_set_num_threads(1);  // what every other contender's kernels need
    return spent;
  }

 private:
  int threads_ = 1;
};

}  // namespace

std::unique_ptr<contender> make_dpotrf() {
  openblas_set_num_threads(1);
  return std::make_unique<dpotrf>();
}

#else

void check_factor(const cholesky_problem&) {}
std::unique_ptr<contender> make_dpotrf() { return nullptr; }

#endif

}  // namespace bench
