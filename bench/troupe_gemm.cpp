// Troupe on an accelerator: products of matrices in tiles, by cuBLAS where there is one; a large tile there and back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "troupe_gemm.hpp"

#include "device_work.hpp"
#include "gemm_work.hpp"

#if defined(TROUPE_BENCH_HAVE_CUDA)
#include "cublas.hpp"
#endif

#include <algorithm>
#include <vector>

namespace bench {

namespace {

using troupe::index_t;
using matrix = troupe::array<float, 2>;
using factor = troupe::view<const float, 2>;
using result = troupe::view<float, 2>;

constexpr troupe::source product_text{gemm_text, "product"}, add_product_text{gemm_text, "add_product"};
#if defined(TROUPE_BENCH_HAVE_CUDA)
void multiply(troupe::device_call& call, const factor& a, const factor& b, const result& c, float beta) {
  call.state<cublas>().multiply(call.lane(), static_cast<int>(c.size(0)), static_cast<int>(c.size(1)),
                                static_cast<int>(a.size(1)), a.data(), static_cast<int>(a.stride(0)), b.data(),
                                static_cast<int>(b.stride(0)), beta, c.data(), static_cast<int>(c.stride(0)));
}
void by_cublas(troupe::device_call& call, factor a, factor b, result c) { multiply(call, a, b, c, 0); }
void add_by_cublas(troupe::device_call& call, factor a, factor b, result c) { multiply(call, a, b, c, 1); }
constexpr auto product = troupe::kernel<troupe::in<float, 2>, troupe::in<float, 2>, troupe::out<float, 2>>("product")
                             .on(troupe::gpu, product_text)
                             .on(troupe::cuda, troupe::routine<&by_cublas>);
constexpr auto add_product =
    troupe::kernel<troupe::in<float, 2>, troupe::in<float, 2>, troupe::inout<float, 2>>("add_product")
        .on(troupe::gpu, add_product_text)
        .on(troupe::cuda, troupe::routine<&add_by_cublas>);
#else
constexpr auto product =
    troupe::kernel<troupe::in<float, 2>, troupe::in<float, 2>, troupe::out<float, 2>>("product").on(troupe::gpu,
                                                                                                    product_text);
constexpr auto add_product =
    troupe::kernel<troupe::in<float, 2>, troupe::in<float, 2>, troupe::inout<float, 2>>("add_product")
        .on(troupe::gpu, add_product_text);
#endif

void demand_library(const std::string& device) {
  if (!device.starts_with("cuda:")) return;
#if defined(TROUPE_BENCH_HAVE_CUDA)
  if (const auto why = cublas_missing(); !why.empty()) throw missing("no cuBLAS: " + why);
#else
  throw missing("no cuBLAS: built without its headers");
#endif
}

troupe::task_options on(const std::string& device) { return {.where = troupe::scope::executor(device)}; }

std::uint64_t moved_by(const troupe::runtime& rt, const std::string& device) {
  for (const auto& each : rt.executors())
    if (each.name == device) return each.bytes_moved;
  throw wrong_answer("there is no executor " + device);
}

troupe::box<2> tile_box(std::size_t tile, std::size_t i, std::size_t j) {
  const auto t = static_cast<index_t>(tile), y = static_cast<index_t>(i) * t, x = static_cast<index_t>(j) * t;
  return {{y, x}, {y + t, x + t}};
}

// Matrices with a handle for each tile.
struct factors {
  matrix whole;
  std::vector<matrix> tiles;
  std::size_t side;

  factors(troupe::runtime& rt, std::size_t n, std::size_t tile)
      : whole(rt.array<float>({static_cast<index_t>(n), static_cast<index_t>(n)},
                              troupe::tiles(static_cast<index_t>(tile), static_cast<index_t>(tile)))),
        side(n / tile) {
    for (std::size_t i = 0; i < side; ++i)
      for (std::size_t j = 0; j < side; ++j) tiles.push_back(whole.sub(tile_box(tile, i, j)));
  }
  const matrix& operator()(std::size_t i, std::size_t j) const { return tiles[i * side + j]; }
};

template <class F>
void fill(troupe::runtime& rt, const factors& m, F element) {
  const auto n = m.whole.size(0), tile = n / static_cast<index_t>(m.side);
  rt.for_each(
      troupe::grid(n, n).chunks(tile, tile),
      [element](result v) {
        for (index_t i = v.lo(0); i < v.hi(0); ++i)
          for (index_t j = v.lo(1); j < v.hi(1); ++j)
            v(i, j) = element(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
      },
      troupe::write(m.whole));
}

void check(const factors& c) {
  const auto n = static_cast<std::size_t>(c.whole.size(0)), tile = n / c.side;
  check_product(n, [&](std::size_t i, std::size_t j) {
    return c(i / tile, j / tile).read()(static_cast<index_t>(i % tile), static_cast<index_t>(j % tile));
  });
}

struct set {
  factors a, b, c;
  set(troupe::runtime& rt, std::size_t n, std::size_t tile) : a(rt, n, tile), b(rt, n, tile), c(rt, n, tile) {
    fill(rt, a, element_of_a);
    fill(rt, b, element_of_b);
  }
  void step(troupe::runtime& rt, const troupe::task_options& where, std::size_t i, std::size_t j, std::size_t k) const {
    if (k == 0)
      rt.spawn(where, product, troupe::read(a(i, k)), troupe::read(b(k, j)), troupe::write(c(i, j)));
    else
      rt.spawn(where, add_product, troupe::read(a(i, k)), troupe::read(b(k, j)), troupe::update(c(i, j)));
  }
};

}  // namespace

// The first pass brings the factors, makes handles and room; the second is timed.
double gemm_on(troupe::runtime& rt, const std::string& device, const gemm_problem& problem) {
  demand_library(device);
  std::vector<set> all;
  for (int p = 0; p < problem.products; ++p) all.emplace_back(rt, problem.n, problem.tile);
  const auto where = on(device);
  double spent = 0;
  for (int pass = 0; pass < 2; ++pass) {
    rt.wait_all();
    const std::size_t side = problem.n / problem.tile;
    const meter clock;
    for (const set& one : all)
      for (std::size_t i = 0; i < side; ++i)
        for (std::size_t j = 0; j < side; ++j)
          for (std::size_t k = 0; k < side; ++k) one.step(rt, where, i, j, k);
    rt.wait_all();
    spent = clock.stop().nanoseconds;
  }
  for (const set& one : all) check(one.c);
  return spent;
}

// In: a task that looks at the tile; out: a view of it. The first pass makes room and pins it.
transfer_cost transfer_on(troupe::runtime& rt, const std::string& device, std::size_t bytes) {
  static constexpr auto look = troupe::kernel<troupe::in<std::uint32_t, 1>, troupe::inout<std::uint32_t, 1>>("look").on(
      troupe::gpu, troupe::source{look_text, "look"});
  static constexpr auto stir = troupe::kernel<troupe::inout<std::uint32_t, 1>, std::uint32_t>("stir").on(
      troupe::gpu, troupe::source{stir_text, "stir"});
  const auto n = static_cast<index_t>(bytes / sizeof(std::uint32_t));
  const auto large = rt.filled<std::uint32_t>({n}, troupe::tiles(n), 1);
  const auto small = rt.filled<std::uint32_t>({1}, troupe::tiles(1), 0);
  const auto where = on(device);
  transfer_cost spent;
  std::uint32_t expected = 0, first = 1;
  for (int pass = 0; pass < 3; ++pass) {
    first = large.update()(0) += 1;  // what is on the device is old
    rt.wait_all();
    const meter in;
    rt.spawn(where, look, troupe::read(large), troupe::update(small)).get();
    spent.in_ns = in.stop().nanoseconds;
    expected += first;
    rt.spawn(where, stir, troupe::update(large), stir_factor).get();
    const meter out;
    const auto back = large.read();
    spent.out_ns = out.stop().nanoseconds;
    if (back(0) != first * stir_factor) throw wrong_answer("a tile came back wrong");
  }
  if (small.read()(0) != expected) throw wrong_answer("a tile arrived wrong");
  return spent;
}

// Blocks of C that fit beside what they are made of, so that a tile of a factor comes once for each of them.
out_of_core_cost out_of_core_on(troupe::runtime& rt, const std::string& device, const out_of_core_problem& problem) {
  demand_library(device);
  constexpr auto tiles = out_of_core_problem::tiles;
  const auto fit = static_cast<std::size_t>(0.8 * static_cast<double>(problem.quota_bytes) /
                                            static_cast<double>(problem.tile * problem.tile * sizeof(float)));
  std::size_t block = 1;
  while (block < tiles && (block + 1) * (block + 1) + 4 * (block + 1) <= fit) ++block;
  const std::size_t blocks = (tiles + block - 1) / block, step = (tiles + blocks - 1) / blocks;  // alike in size
  const set one(rt, problem.n(), problem.tile);
  const auto where = on(device);
  rt.wait_all();
  const auto before = moved_by(rt, device);
  const meter clock;
  for (std::size_t y = 0; y < tiles; y += step)
    for (std::size_t x = 0; x < tiles; x += step)
      for (std::size_t k = 0; k < tiles; ++k)
        for (std::size_t i = y; i < std::min(y + step, tiles); ++i)
          for (std::size_t j = x; j < std::min(x + step, tiles); ++j) one.step(rt, where, i, j, k);
  // All of it is wanted in host memory.
  const auto n = one.c.whole.size(0), tile = static_cast<index_t>(problem.tile);
  rt.for_each(
      {.where = troupe::scope::cpu()}, troupe::grid(n, n).chunks(tile, tile), [](factor) {}, troupe::read(one.c.whole));
  rt.wait_all();
  out_of_core_cost spent;
  spent.nanoseconds = clock.stop().nanoseconds;
  spent.bytes_moved = static_cast<double>(moved_by(rt, device) - before);
  check(one.c);
  return spent;
}

}  // namespace bench
