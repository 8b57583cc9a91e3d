// What this file is for: one step of each stencil as a kernel, and the loop that alternates between two arrays.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/stencil.hpp"

#include <string>
#include <utility>

#include "algorithms/stencil_text.hpp"

#include <troupe/offer.hpp>

extern "C" const char troupe_offers_stencil = 0;  // algorithms/CMakeLists.txt names it

namespace troupe::algorithms {

namespace {

constexpr auto jacobi_step = kernel<in<double, 2>, out<double, 2>>("jacobi_step")
                                 .requiring(covers(0, 1, 1))
                                 .on(cpu,
                                     [](view<const double, 2> from, view<double, 2> to) {
                                       for (index_t y = to.lo(0); y < to.hi(0); ++y) {
                                         const double* above = &from(y - 1, to.lo(1));
                                         const double* here = &from(y, to.lo(1));
                                         const double* below = &from(y + 1, to.lo(1));
                                         double* result = &to(y, to.lo(1));
                                         for (index_t x = 0; x < to.size(1); ++x)
                                           result[x] = 0.25 * ((above[x] + below[x]) + (here[x - 1] + here[x + 1]));
                                       }
                                     })
                                 .on(gpu, texts::jacobi_step);

constexpr auto life_step =
    kernel<in<std::uint8_t, 2>, out<std::uint8_t, 2>>("life_step")
        .requiring(covers(0, 1, 1))
        .on(cpu,
            [](view<const std::uint8_t, 2> from, view<std::uint8_t, 2> to) {
              for (index_t y = to.lo(0); y < to.hi(0); ++y) {
                const std::uint8_t* row[3] = {&from(y - 1, to.lo(1)), &from(y, to.lo(1)), &from(y + 1, to.lo(1))};
                std::uint8_t* result = &to(y, to.lo(1));
                for (index_t x = 0; x < to.size(1); ++x) {
                  int alive = 0;
                  for (const std::uint8_t* r : row) alive += (r[x - 1] != 0) + (r[x] != 0) + (r[x + 1] != 0);
                  result[x] = alive == 3 || (alive == 4 && row[1][x] != 0);  // the cell itself is counted
                }
              }
            })
        .on(gpu, texts::life_step);

const offer offered{jacobi_step, life_step};

template <class T>
window_mapper<2> neighbourhood(border edge, T outside) {
  switch (edge) {
    case border::clamp:
      return window(1, 1).clamp();
    case border::wrap:
      return window(1, 1).wrap();
    case border::fill:
      return window(1, 1).fill(outside);
    default:
      throw error(errc::bad_argument, "a stencil needs values beyond the edge: choose clamp, wrap or fill");
  }
}

template <class T, class Step>
array<T, 2> iterate(runtime& rt, const Step& step, const array<T, 2>& start, int steps, border edge, T outside,
                    const scope& where) {
  if (!start) throw error(errc::bad_argument, "stencil: the array handle is empty");
  if (steps < 0) throw error(errc::bad_argument, "stencil: the number of steps is negative: " + std::to_string(steps));
  const window_mapper<2> around = neighbourhood(edge, outside);
  array<T, 2> from = start;
  if (steps == 0) return from;
  array<T, 2> to = rt.array<T, 2>(start.size(), tiles(start.tile(0), start.tile(1)), start.name() + " (next)");
  const auto all = grid(start.size(0), start.size(1));
  for (int s = 0; s < steps; ++s) {
    // Options take memory in every task, so only where there is something to say.
    if (where.is_any())
      rt.for_each(all, step, read(from, around), write(to));
    else
      rt.for_each({.where = where}, all, step, read(from, around), write(to));
    std::swap(from, to);
  }
  return from;
}

}  // namespace

array<double, 2> jacobi(runtime& rt, const array<double, 2>& start, int steps, border edge, double outside,
                        const scope& where) {
  return iterate(rt, jacobi_step, start, steps, edge, outside, where);
}

array<std::uint8_t, 2> life(runtime& rt, const array<std::uint8_t, 2>& start, int generations, border edge,
                            std::uint8_t outside, const scope& where) {
  return iterate(rt, life_step, start, generations, edge, outside, where);
}

}  // namespace troupe::algorithms
