// Loops over views, and the same loops over pointers, in turn. Views are headers only: nothing is submitted.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "views.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <troupe/view.hpp>

#include "workloads.hpp"

namespace bench {

namespace {

using troupe::index_t;
using troupe::view;

// A view that begins at `lo` along each dimension, as those of later tiles do.
template <class T, int N>
view<T, N> viewed(std::vector<std::remove_const_t<T>>& all, std::array<index_t, N> size, index_t lo) {
  troupe::detail::raw_view raw;
  raw.data = reinterpret_cast<std::byte*>(all.data());
  index_t step = 1;
  for (int d = N - 1; d >= 0; --d) {
    const auto at = static_cast<std::size_t>(d);
    raw.lo[at] = lo;
    raw.hi[at] = lo + size[at];
    raw.stride[at] = step;
    step *= size[at];
  }
  return view<T, N>(raw);
}

// Each element says which one is read next.
[[gnu::noinline, gnu::aligned(64)]] index_t follow(view<const index_t, 1> next, index_t from, std::size_t steps) {
  for (std::size_t i = 0; i < steps; ++i) from = next(from);
  return from;
}
[[gnu::noinline, gnu::aligned(64)]] index_t follow(const index_t* next, index_t from, std::size_t steps) {
  for (std::size_t i = 0; i < steps; ++i) from = next[from];
  return from;
}

[[gnu::noinline, gnu::aligned(64)]] void smooth(view<const float, 2> from, view<float, 2> to) {
  for (index_t i = to.lo(0) + 1; i < to.hi(0) - 1; ++i)
    for (index_t j = to.lo(1) + 1; j < to.hi(1) - 1; ++j)
      to(i, j) = from(i - 1, j) + from(i, j - 1) + from(i, j) + from(i, j + 1) + from(i + 1, j);
}
[[gnu::noinline, gnu::aligned(64)]] void smooth(const float* from, float* to, index_t rows, index_t columns) {
  for (index_t i = 1; i < rows - 1; ++i)
    for (index_t j = 1; j < columns - 1; ++j) {
      const float* const at = from + i * columns + j;
      to[i * columns + j] = at[-columns] + at[-1] + at[0] + at[1] + at[columns];
    }
}

template <class F>
double seconds_of(F&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The median of how much longer `ours` takes than `theirs`, in turn.
template <class F, class G>
double compared(int times, F&& ours, G&& theirs) {
  std::vector<double> ratios;
  for (int i = 0; i < times; ++i) {
    const double mine = seconds_of(ours);
    ratios.push_back(mine / seconds_of(theirs));
  }
  return median(ratios);
}

double chain_of_reads(int times) {
  constexpr std::size_t n = 4096, steps = 40'000;
  constexpr index_t lo = 100'000;
  std::vector<index_t> order(n), next(n), next_in_view(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, std::mt19937(1));
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(order[i]);
    next[at] = order[(i + 1) % n];
    next_in_view[at] = next[at] + lo;
  }
  const auto all = viewed<const index_t, 1>(next_in_view, {static_cast<index_t>(n)}, lo);
  index_t seen = 0, expected = 0;
  const double ratio = compared(
      times, [&] { seen = follow(all, lo, steps); }, [&] { expected = follow(next.data(), 0, steps); });
  if (seen != expected + lo) throw wrong_answer("a view leads elsewhere than a pointer");
  return ratio;
}

double rows_of_floats(int times) {
  constexpr index_t side = 256;
  constexpr int sweeps = 20;
  std::vector<float> from(static_cast<std::size_t>(side * side)), seen(from.size()), expected(from.size());
  std::iota(from.begin(), from.end(), 1.0f);
  const auto in = viewed<const float, 2>(from, {side, side}, 1000);
  const auto out = viewed<float, 2>(seen, {side, side}, 1000);
  const double ratio = compared(
      times,
      [&] {
        for (int i = 0; i < sweeps; ++i) smooth(in, out);
      },
      [&] {
        for (int i = 0; i < sweeps; ++i) smooth(from.data(), expected.data(), side, side);
      });
  if (seen != expected) throw wrong_answer("views have other sums than pointers");
  return ratio;
}

figures measure_views(contender& who, const settings& how) {
  if (who.name() != "troupe") return figures(2);
  const int times = how.quick ? 9 : 41;
  return {chain_of_reads(times), rows_of_floats(times)};
}

}  // namespace

group views_group() {
  return {"views",
          "loops over views, by the time of the same loops over pointers",
          {{"views/chain_of_reads", "of a pointer's", better::lower, 1.05},
           {"views/rows", "of a pointer's", better::lower, 1.1}},
          {},
          {},
          measure_views,
          {}};
}

}  // namespace bench
