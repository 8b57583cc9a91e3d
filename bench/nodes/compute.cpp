// Kernels and checks of compute.hpp.
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
#include <ctime>
#include <span>
#include <stdexcept>
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

}  // namespace

double processor_time_of(pid_t process) {
  clockid_t which{};
  timespec t{};
  if (clock_getcpuclockid(process, &which) != 0 || clock_gettime(which, &t) != 0)
    throw std::runtime_error("the clock of process " + std::to_string(process) + " cannot be read");
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

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
  for (int i = 0; i < 2000; ++i) {
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

two_times filter_on(troupe::runtime& rt, filter_work& work, const processor_time& cpu) {
  work.renew();
  const index_t side = work.side, tile = filter_work::tile, width = filter_work::width;
  two_times taken;
  {
    const auto tiles = troupe::tiles(tile, tile);
    const auto image = rt.borrow<float>(std::span(work.image), {side, side}, tiles);
    const auto result = rt.borrow<float>(std::span(work.result), {side, side}, tiles);
    const auto weights = rt.borrow<float>(std::span(work.weights), {width, width}, troupe::tiles(width, width));
    const auto before = cpu();
    const auto begin = clock::now();
    rt.for_each(troupe::grid(side, side).chunks(tile, tile), filter_tile,
                troupe::read(image, troupe::window(filter_work::radius, filter_work::radius).clamp()),
                troupe::read(weights, troupe::all{}), troupe::write(result))
        .get();
    taken.done = since(begin);
    taken.cpu = cpu() - before;
    const auto here = result.read();
    taken.here = since(begin);
  }
  rt.wait_all();
  work.check();
  return taken;
}

#if defined(TROUPE_BENCH_HAVE_BLAS)
std::optional<two_times> factor_on(troupe::runtime& rt, troupe::array<double, 2>& matrix, cholesky_problem& problem,
                                   std::size_t rows, const processor_time& cpu) {
  const troupe::algorithms::single_threaded_blas guard;
  const auto n = static_cast<index_t>(problem.n), tile = static_cast<index_t>(rows);
  two_times taken;
  {
    if (!matrix || matrix.size(0) != n) matrix = rt.array<double>({n, n}, troupe::tiles(tile, tile), "A");
    const auto each_tile = [&](const auto& f) {
      for (index_t i = 0; i < n; i += tile)
        for (index_t j = 0; j <= i; j += tile) f(matrix.sub({{i, j}, {i + tile, j + tile}}), i, j);
    };
    const auto at = [&](index_t i, index_t j) { return static_cast<std::size_t>(i + j * n); };
    const auto each_number = [tile](const auto& seen, const auto& f) {
      for (index_t y = 0; y < tile; ++y)
        for (index_t x = 0; x < tile; ++x) f(seen(y, x), y, x);
    };
    each_tile([&](const auto& t, index_t i, index_t j) {  // symmetric: rows may be read as columns
      each_number(t.write(), [&](double& to, index_t y, index_t x) { to = problem.matrix[at(j + x, i + y)]; });
    });
    const auto before = cpu();
    const auto begin = clock::now();
    troupe::algorithms::cholesky(rt, matrix).get();
    taken.done = since(begin);
    taken.cpu = cpu() - before;
    each_tile([](const auto& t, index_t, index_t) { t.read(); });
    taken.here = since(begin);
    each_tile([&](const auto& t, index_t i, index_t j) {
      each_number(t.read(), [&](double from, index_t y, index_t x) {
        if (j + x <= i + y) problem.factor[at(i + y, j + x)] = from;
      });
    });
  }
  rt.wait_all();
  check_factor(problem);
  return taken;
}
#else
std::optional<two_times> factor_on(troupe::runtime&, troupe::array<double, 2>&, cholesky_problem&, std::size_t,
                                   const processor_time&) {
  return {};
}
#endif

}  // namespace bench
