// Kernels, task lists and checks of compute.hpp.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "compute.hpp"

#include "../cholesky.hpp"
#include "../workloads.hpp"
#include "algorithms/linear_algebra.hpp"

#include <troupe/offer.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <string>

namespace bench {

namespace {

using troupe::index_t;
using clock = std::chrono::steady_clock;

double since(clock::time_point begin) { return std::chrono::duration<double, std::nano>(clock::now() - begin).count(); }

// ---- the filter ----------------------------------------------------------------------------------------------------

constexpr auto filter_tile =
    troupe::kernel<troupe::in<float, 2>, troupe::in<float, 2>, troupe::out<float, 2>>("bench.filter")
        .on(troupe::cpu,
            [](troupe::view<const float, 2> from, troupe::view<const float, 2> weights, troupe::view<float, 2> to) {
              constexpr index_t r = filter_work::radius, w = filter_work::width;
              for (index_t y = to.lo(0); y < to.hi(0); ++y) {
                float* const row = &to(y, to.lo(1));
                for (index_t x = 0; x < to.size(1); ++x) row[x] = 0;
                for (index_t v = 0; v < w; ++v) {
                  const float* const above = &from(y + v - r, to.lo(1) - r);
                  for (index_t u = 0; u < w; ++u) {
                    const float weight = weights(v, u);
                    for (index_t x = 0; x < to.size(1); ++x) row[x] += weight * above[x + u];
                  }
                }
              }
            });

const troupe::offer offered_filter{filter_tile};

// ---- the factorisation ---------------------------------------------------------------------------------------------

#if defined(TROUPE_BENCH_HAVE_BLAS)
using in = troupe::in<double, 1>;
using inout = troupe::inout<double, 1>;
using tile_in = troupe::view<const double, 1>;
using tile_inout = troupe::view<double, 1>;

constexpr auto potrf = troupe::kernel<inout, index_t>("bench.potrf").on(troupe::cpu, [](tile_inout c, index_t rows) {
  run_step(step::potrf, static_cast<std::size_t>(rows), c.data(), nullptr, nullptr);
});
constexpr auto trsm =
    troupe::kernel<in, inout, index_t>("bench.trsm").on(troupe::cpu, [](tile_in a, tile_inout c, index_t rows) {
      run_step(step::trsm, static_cast<std::size_t>(rows), c.data(), a.data(), nullptr);
    });
constexpr auto syrk =
    troupe::kernel<in, inout, index_t>("bench.syrk").on(troupe::cpu, [](tile_in a, tile_inout c, index_t rows) {
      run_step(step::syrk, static_cast<std::size_t>(rows), c.data(), a.data(), nullptr);
    });
constexpr auto gemm = troupe::kernel<in, in, inout, index_t>("bench.gemm")
                          .on(troupe::cpu, [](tile_in a, tile_in b, tile_inout c, index_t rows) {
                            run_step(step::gemm, static_cast<std::size_t>(rows), c.data(), a.data(), b.data());
                          });

const troupe::offer offered_factorisation{potrf, trsm, syrk, gemm};
#endif

}  // namespace

filter_work::filter_work(index_t side_)
    : side(side_),
      image(static_cast<std::size_t>(side_ * side_)),
      weights(static_cast<std::size_t>(width * width)),
      result(image.size()) {
  lcg random;
  for (auto& pixel : image) pixel = static_cast<float>(random() % 256) / 256.0F;
  for (auto& weight : weights) weight = static_cast<float>(random() % 64 + 1) / 4096.0F;
}

void filter_work::renew() {
  const float by = scale_ >= 8 ? 0.125F : 2.0F;  // exact
  scale_ *= by;
  for (auto& pixel : image) pixel *= by;
}

void filter_work::check() const {
  lcg random;
  const auto at = [&](index_t y, index_t x) {
    return static_cast<std::size_t>(std::clamp<index_t>(y, 0, side - 1) * side + std::clamp<index_t>(x, 0, side - 1));
  };
  const auto any = [&] { return static_cast<index_t>(random() % static_cast<std::uint32_t>(side)); };
  for (int i = 0; i < 20'000; ++i) {
    const index_t y = any(), x = any();
    double expected = 0;
    for (index_t v = 0; v < width; ++v)
      for (index_t u = 0; u < width; ++u)
        expected += static_cast<double>(weights[static_cast<std::size_t>(v * width + u)]) *
                    static_cast<double>(image[at(y + v - radius, x + u - radius)]);
    const auto found = static_cast<double>(result[at(y, x)]);
    if (!(std::abs(found - expected) <= 1e-4 * expected + 1e-6))
      throw wrong_answer("a pixel of the filtered image is " + std::to_string(found) + ", not " +
                         std::to_string(expected));
  }
}

two_times filter_on(troupe::runtime& rt, filter_work& work) {
  work.renew();
  const index_t side = work.side, tile = filter_work::tile, width = filter_work::width;
  two_times taken;
  {
    const auto tiles = troupe::tiles(tile, tile);
    const auto image = rt.borrow<float>(std::span(work.image), {side, side}, tiles);
    const auto result = rt.borrow<float>(std::span(work.result), {side, side}, tiles);
    const auto weights = rt.borrow<float>(std::span(work.weights), {width, width}, troupe::tiles(width, width));
    const auto begin = clock::now();
    rt.for_each(troupe::grid(side, side).chunks(tile, tile), filter_tile,
                troupe::read(image, troupe::window(filter_work::radius, filter_work::radius).clamp()),
                troupe::read(weights, troupe::all{}), troupe::write(result))
        .get();
    taken.done = since(begin);
    const auto here = result.read();
    taken.here = since(begin);
  }
  rt.wait_all();
  work.check();
  return taken;
}

#if defined(TROUPE_BENCH_HAVE_BLAS)
std::optional<two_times> factor_on(troupe::runtime& rt, cholesky_problem& problem, std::size_t rows) {
  const troupe::algorithms::single_threaded_blas guard;
  tiled_matrix matrix(problem.n, rows);
  matrix.load(problem);
  const auto tiles = matrix.tiles();
  const auto tile_size = static_cast<index_t>(matrix.tile_size());
  const auto size = tiles * tiles * matrix.tile_size();
  two_times taken;
  {
    const auto whole =
        rt.borrow<double>(std::span(matrix(0, 0), size), {static_cast<index_t>(size)}, troupe::tiles(tile_size));
    const auto at = [&](std::size_t i, std::size_t j) {
      const auto k = static_cast<index_t>(i + j * tiles);
      return whole.sub({{k * tile_size}, {(k + 1) * tile_size}});
    };
    const auto n = static_cast<index_t>(rows);
    const auto begin = clock::now();
    for (const auto& task : cholesky_tasks(tiles)) {
      const auto target = at(task.out_i, task.out_j);
      switch (task.kind) {
        case step::potrf:
          rt.spawn(potrf, troupe::update(target), n);
          break;
        case step::trsm:
          rt.spawn(trsm, troupe::read(at(task.a_i, task.a_j)), troupe::update(target), n);
          break;
        case step::syrk:
          rt.spawn(syrk, troupe::read(at(task.a_i, task.a_j)), troupe::update(target), n);
          break;
        case step::gemm:
          rt.spawn(gemm, troupe::read(at(task.a_i, task.a_j)), troupe::read(at(task.b_i, task.b_j)),
                   troupe::update(target), n);
      }
    }
    rt.wait_all();
    taken.done = since(begin);
    const auto here = whole.read();
    taken.here = since(begin);
  }
  rt.wait_all();
  matrix.store(problem);
  check_factor(problem);
  return taken;
}
#else
std::optional<two_times> factor_on(troupe::runtime&, cholesky_problem&, std::size_t) { return {}; }
#endif

}  // namespace bench
