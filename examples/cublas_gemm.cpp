// C = A * B in single precision, in tiles: cuBLAS on NVIDIA's GPUs, inside the same flow of data as everything else;
// plain loops on cores. Tiles move by themselves, and stay where they are used.
//
//   troupe-cublas_gemm [SIZE [TILE]] [--devices LIST]
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <cublas_v2.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <troupe/troupe.hpp>

#include "examples/command_line.hpp"

namespace {

using namespace troupe;
using troupe::index_t;

void check(cublasStatus_t s, const char* what) {
  if (s != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(what) + ": " + cublasGetStatusString(s));
}

// One for each device; made there by the first call.
struct blas {
  blas() { check(cublasCreate(&handle), "cublasCreate"); }
  blas(const blas&) = delete;
  blas& operator=(const blas&) = delete;
  ~blas() { cublasDestroy(handle); }
  cublasHandle_t handle = nullptr;
};

// Row by row; cuBLAS counts column by column, so it is given the transposed product.
void multiply_on_gpu(device_call& call, view<const float, 2> a, view<const float, 2> b, view<float, 2> c) {
  const cublasHandle_t h = call.state<blas>().handle;
  check(cublasSetStream(h, static_cast<cudaStream_t>(call.lane())), "cublasSetStream");
  const float one = 1;
  const auto rows = static_cast<int>(c.size(0)), columns = static_cast<int>(c.size(1)),
             depth = static_cast<int>(a.size(1));
  check(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, columns, rows, depth, &one, b.data(), static_cast<int>(b.stride(0)),
                    a.data(), static_cast<int>(a.stride(0)), &one, c.data(), static_cast<int>(c.stride(0))),
        "cublasSgemm");  // enqueues; does not wait
}

void multiply_on_cores(view<const float, 2> a, view<const float, 2> b, view<float, 2> c) {
  for (index_t i = 0; i < c.size(0); ++i)
    for (index_t k = 0; k < a.size(1); ++k) {
      const float x = a(a.lo(0) + i, a.lo(1) + k);
      for (index_t j = 0; j < c.size(1); ++j) c(c.lo(0) + i, c.lo(1) + j) += x * b(b.lo(0) + k, b.lo(1) + j);
    }
}

constexpr auto multiply = kernel<in<float, 2>, in<float, 2>, inout<float, 2>>("multiply")
                              .on(cpu, &multiply_on_cores)
                              .on(cuda, routine<&multiply_on_gpu>);

// Small whole numbers, so that every order of summation gives the same.
float element_of_a(index_t i, index_t k) { return static_cast<float>((i * 3 + k * 5) % 7 - 3); }
float element_of_b(index_t k, index_t j) { return static_cast<float>((k * 2 + j * 11) % 5 - 2); }

template <class F>
void fill(const array<float, 2>& to, F f) {
  auto v = to.write();
  for (index_t i = 0; i < v.size(0); ++i)
    for (index_t j = 0; j < v.size(1); ++j) v(i, j) = f(i, j);
}

// Every 97th element against a sum of its own.
bool is_right(const array<float, 2>& c, index_t n) {
  const auto v = c.read();
  for (index_t at = 0; at < n * n; at += 97) {
    float sum = 0;
    for (index_t k = 0; k < n; ++k) sum += element_of_a(at / n, k) * element_of_b(k, at % n);
    if (v(at / n, at % n) != sum) return false;
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) try {
  const std::string usage = "usage: troupe-cublas_gemm [SIZE [TILE]] [--devices LIST]   512 and 128 unless given";
  if (examples::explains_itself(count, arguments, "troupe-cublas_gemm", usage)) return 0;
  const auto asked = examples::read_command_line(count, arguments, {{1, 65536}, {1, 65536}}, usage);
  const index_t n = asked.numbers.empty() ? 512 : asked.numbers[0];
  const index_t tile = std::min(n, asked.numbers.size() < 2 ? index_t{128} : asked.numbers[1]);
  runtime rt(asked.options());
  const auto shape = tiles(tile, tile);
  auto a = rt.array<float>({n, n}, shape, "a"), b = rt.array<float>({n, n}, shape, "b");
  fill(a, element_of_a);
  fill(b, element_of_b);
  double best = 0;
  bool right = true;
  for (int turn = 0; turn < 3; ++turn) {  // the first compiles, makes handles and brings the data
    auto c = rt.filled<float>({n, n}, shape, 0, "c");
    rt.wait_all();
    const auto begin = std::chrono::steady_clock::now();
    for (index_t i = 0; i < n; i += tile)
      for (index_t j = 0; j < n; j += tile)
        for (index_t k = 0; k < n; k += tile) {
          const index_t i_end = std::min(i + tile, n), j_end = std::min(j + tile, n), k_end = std::min(k + tile, n);
          rt.spawn(multiply, read(a.sub({{i, k}, {i_end, k_end}})), read(b.sub({{k, j}, {k_end, j_end}})),
                   update(c.sub({{i, j}, {i_end, j_end}})));
        }
    rt.wait_all();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const auto size = static_cast<double>(n);
    best = std::max(best, 2 * size * size * size / took.count() / 1e9);
    right = right && is_right(c, n);
  }
  std::printf("%lld x %lld in tiles of %lld: %.1f GFLOP/s, %s\n", static_cast<long long>(n), static_cast<long long>(n),
              static_cast<long long>(tile), best, right ? "right" : "WRONG");
  examples::print_executors(rt, asked);
  return right ? 0 : 1;
} catch (...) {
  return examples::complain("troupe-cublas_gemm");
}
