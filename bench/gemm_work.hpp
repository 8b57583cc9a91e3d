// Matrix products on accelerators, the same for every contender: sizes, kernels as text, elements, proofs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "workloads.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

/// C = A B, n x n floats in tiles, so many at once with matrices of their own.
struct gemm_problem {
  std::size_t n = 0, tile = 0;
  int products = 1;

  [[nodiscard]] std::size_t tasks() const {
    const auto side = n / tile;
    return side * side * side * static_cast<std::size_t>(products);
  }
  [[nodiscard]] double flops() const {
    const auto size = static_cast<double>(n);
    return 2 * size * size * size * products;
  }
};

/// Three matrices in host memory that take about four times what the device may have.
struct out_of_core_problem {
  static constexpr std::size_t tiles = 13;  ///< each way
  std::uint64_t quota_bytes = 0;
  std::size_t tile = 0;

  explicit out_of_core_problem(std::uint64_t quota);
  [[nodiscard]] std::size_t n() const { return tiles * tile; }
  [[nodiscard]] double flops() const { return gemm_problem{n(), tile}.flops(); }
};

/// The kernels of a device without cuBLAS: an element of C for each work-item, by `product` alone, by `add_product` on
/// top.
inline constexpr const char* gemm_text = R"(
GPU_KERNEL void product(GPU_IN(float, a), GPU_IN(float, b), GPU_OUT(float, c)) {
  const long x = GPU_GLOBAL_ID(0), y = GPU_GLOBAL_ID(1), depth = GPU_SIZE(a, 1);
  if (y >= GPU_SIZE(c, 0) || x >= GPU_SIZE(c, 1)) return;
  float sum = 0.0f;
  for (long k = 0; k < depth; ++k)
    sum += GPU_AT2(a, GPU_LO(a, 0) + y, GPU_LO(a, 1) + k) * GPU_AT2(b, GPU_LO(b, 0) + k, GPU_LO(b, 1) + x);
  GPU_AT2(c, GPU_LO(c, 0) + y, GPU_LO(c, 1) + x) = sum;
}
GPU_KERNEL void add_product(GPU_IN(float, a), GPU_IN(float, b), GPU_INOUT(float, c)) {
  const long x = GPU_GLOBAL_ID(0), y = GPU_GLOBAL_ID(1), depth = GPU_SIZE(a, 1);
  if (y >= GPU_SIZE(c, 0) || x >= GPU_SIZE(c, 1)) return;
  float sum = GPU_AT2(c, GPU_LO(c, 0) + y, GPU_LO(c, 1) + x);
  for (long k = 0; k < depth; ++k)
    sum += GPU_AT2(a, GPU_LO(a, 0) + y, GPU_LO(a, 1) + k) * GPU_AT2(b, GPU_LO(b, 0) + k, GPU_LO(b, 1) + x);
  GPU_AT2(c, GPU_LO(c, 0) + y, GPU_LO(c, 1) + x) = sum;
})";

/// Small whole numbers: every order of summation gives the same.
inline float element_of_a(std::size_t i, std::size_t k) { return static_cast<float>((i * 3 + k * 5) % 7) - 3; }
inline float element_of_b(std::size_t k, std::size_t j) { return static_cast<float>((k * 2 + j * 11) % 5) - 2; }

/// Throws `wrong_answer` unless `at(i, j)` is right wherever it is asked.
template <class At>
void check_product(std::size_t n, At at) {
  lcg random;
  for (int sample = 0; sample < 64; ++sample) {
    const std::size_t i = random() % n, j = random() % n;
    float sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += element_of_a(i, k) * element_of_b(k, j);
    if (const float found = at(i, j); found != sum)
      throw wrong_answer("element " + std::to_string(i) + ", " + std::to_string(j) + " of a product is " +
                         std::to_string(found) + ", not " + std::to_string(sum));
  }
}

}  // namespace bench
