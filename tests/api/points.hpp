// What this file is for: boxes point by point, for tests that compare views with a model.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <tuple>

#include <troupe/troupe.hpp>

namespace test {

using troupe::box;
using troupe::index_t;
using troupe::view;

template <int N>
using point = std::array<index_t, N>;

// Calls f for every point of the box, last dimension fastest.
template <int N, class F>
void for_points(const box<N>& b, const F& f) {
  if (b.empty()) return;
  point<N> p = b.lo;
  for (;;) {
    f(p);
    std::size_t d = N;
    while (d > 0 && ++p[d - 1] >= b.hi[d - 1]) {
      p[d - 1] = b.lo[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

template <class T, int N, std::size_t K>
T& at(const view<T, N>& v, const std::array<index_t, K>& p) {
  return std::apply([&](auto... i) -> T& { return v.at(i...); }, p);
}

}  // namespace test
