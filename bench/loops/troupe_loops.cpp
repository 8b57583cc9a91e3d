// The loops on troupe: a `for_each` for each step, which alternates between two arrays.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "troupe_loops.hpp"

#include <span>
#include <utility>

#include <troupe/troupe.hpp>

namespace bench {

using troupe::index_t;

namespace {
template <class Step>
cost cost_of(troupe::runtime& rt, int steps, const Step& step) {
  const meter clock;
  for (int s = 0; s < steps; ++s) step();
  rt.wait_all();
  return clock.stop();
}
}  // namespace

cost life_on(troupe::runtime& rt, life_problem& p, std::size_t rows, std::size_t columns) {
  const auto n = static_cast<index_t>(p.side);
  const auto cut = troupe::tiles(static_cast<index_t>(rows), static_cast<index_t>(columns));
  auto now = rt.array<std::uint8_t>({n, n}, cut, "now"), next = rt.array<std::uint8_t>({n, n}, cut, "next");
  const auto step = [&] {
    rt.for_each(
        troupe::grid(n, n),
        [](troupe::view<const std::uint8_t, 2> from, troupe::view<std::uint8_t, 2> to) {
          const index_t left = to.lo(1);
          for (index_t y = to.lo(0); y < to.hi(0); ++y)
            life_problem::next(&from(y - 1, left), &from(y, left), &from(y + 1, left), &to(y, left), 0, to.size(1));
        },
        troupe::read(now, troupe::window(1, 1).wrap()), troupe::write(next));
    std::swap(now, next);
  };
  const auto fill = [&] {
    const auto cells = now.write();
    for (index_t y = 0; y < n; ++y)
      for (index_t x = 0; x < n; ++x) cells(y, x) = p.start()[static_cast<std::size_t>(y * n + x)];
  };
  fill();
  step();
  step();
  fill();
  const cost spent = cost_of(rt, p.steps, step);
  const auto cells = now.read();
  p.check([&](std::size_t y, std::size_t x) { return cells(static_cast<index_t>(y), static_cast<index_t>(x)); });
  return spent;
}

cost page_rank_on(troupe::runtime& rt, rank_problem& p, std::size_t chunk, std::size_t tile) {
  const auto n = static_cast<index_t>(p.nodes);
  const auto whole = [&](auto& v, index_t size) { return rt.borrow(std::span(v), {size}, troupe::tiles(size)); };
  const auto first = whole(p.first, n + 1);
  const auto from = whole(p.from, static_cast<index_t>(p.from.size()));
  const auto share = whole(p.share, n);
  const auto cut = troupe::tiles(static_cast<index_t>(tile));
  auto now = rt.array<float>({n}, cut, "now"), next = rt.array<float>({n}, cut, "next");
  const auto fill = [&] {
    const auto ranks = now.write();
    for (index_t i = 0; i < n; ++i) ranks(i) = p.at_first();
  };
  const auto step = [&] {
    rt.for_each(
        troupe::grid(n).chunks(static_cast<index_t>(chunk)),
        [&p](troupe::view<const std::uint32_t, 1> at, troupe::view<const std::uint32_t, 1> link,
             troupe::view<const float, 1> part, troupe::view<const float, 1> rank, troupe::view<float, 1> result) {
          for (index_t i = result.lo(0); i < result.hi(0); ++i) {
            float sum = 0;
            for (std::uint32_t k = at(i); k < at(i + 1); ++k) sum += rank(link(k)) * part(link(k));
            result(i) = p.new_rank(sum);
          }
        },
        troupe::read(first, troupe::all{}), troupe::read(from, troupe::all{}), troupe::read(share, troupe::all{}),
        troupe::read(now, troupe::all{}), troupe::write(next, troupe::one_to_one{}));
    std::swap(now, next);
  };
  fill();
  step();
  fill();
  const cost spent = cost_of(rt, p.steps, step);
  const auto ranks = now.read();
  p.check([&](std::size_t i) { return ranks(static_cast<index_t>(i)); });
  return spent;
}

}  // namespace bench
