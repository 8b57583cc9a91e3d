// What this file is for: on several nodes, what Dagger.jl promises of data that many use, each behaviour by name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// tests/README.md has the list, and what does not apply.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include <troupe/offer.hpp>

#include "several_nodes.hpp"

namespace {

using namespace troupe;
using namespace test;
using test::comes_true;
using troupe::index_t;

constexpr auto add = kernel<inout<long, 1>, long>("dagger.add_to_data").on(cpu, [](view<long, 1> a, long v) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += v;
});
constexpr auto times = kernel<inout<long, 1>, long>("dagger.times").on(cpu, [](view<long, 1> a, long v) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) *= v;
});
constexpr auto total =
    kernel<in<long, 1>, red<long, 1>>("dagger.total").on(cpu, [](view<const long, 1> a, view<long, 1> t) {
      for (index_t i = a.lo(0); i < a.hi(0); ++i) t(0) += a(i);
    });

// Tiled Cholesky, lower.
using matrix_in = in<double, 2>;
using matrix_inout = inout<double, 2>;
using seen = view<const double, 2>;
using mine = view<double, 2>;
constexpr auto factor = kernel<matrix_inout>("dagger.factor").on(cpu, [](mine a) {
  const index_t y0 = a.lo(0), x0 = a.lo(1), n = a.hi(0) - y0;
  for (index_t j = 0; j < n; ++j) {
    for (index_t k = 0; k < j; ++k) a(y0 + j, x0 + j) -= a(y0 + j, x0 + k) * a(y0 + j, x0 + k);
    a(y0 + j, x0 + j) = std::sqrt(a(y0 + j, x0 + j));
    for (index_t i = j + 1; i < n; ++i) {
      for (index_t k = 0; k < j; ++k) a(y0 + i, x0 + j) -= a(y0 + i, x0 + k) * a(y0 + j, x0 + k);
      a(y0 + i, x0 + j) /= a(y0 + j, x0 + j);
    }
  }
});
constexpr auto solve = kernel<matrix_in, matrix_inout>("dagger.solve").on(cpu, [](seen l, mine a) {
  const index_t n = l.hi(0) - l.lo(0);
  for (index_t i = a.lo(0); i < a.hi(0); ++i)
    for (index_t j = 0; j < n; ++j) {
      for (index_t k = 0; k < j; ++k) a(i, a.lo(1) + j) -= a(i, a.lo(1) + k) * l(l.lo(0) + j, l.lo(1) + k);
      a(i, a.lo(1) + j) /= l(l.lo(0) + j, l.lo(1) + j);
    }
});
constexpr auto subtract =
    kernel<matrix_in, matrix_in, matrix_inout>("dagger.subtract").on(cpu, [](seen x, seen y, mine a) {
      for (index_t i = 0; i < a.hi(0) - a.lo(0); ++i)
        for (index_t j = 0; j < a.hi(1) - a.lo(1); ++j)
          for (index_t k = 0; k < x.hi(1) - x.lo(1); ++k)
            a(a.lo(0) + i, a.lo(1) + j) -= x(x.lo(0) + i, x.lo(1) + k) * y(y.lo(0) + j, y.lo(1) + k);
    });
constexpr auto grow_matrix =
    kernel<matrix_inout, double, double>("dagger.grow").on(cpu, [](mine a, double by, double plus) {
      for (index_t i = a.lo(0); i < a.hi(0); ++i)
        for (index_t j = a.lo(1); j < a.hi(1); ++j) a(i, j) = a(i, j) * by + plus;
    });

const offer offered{add, times, total, factor, solve, subtract, grow_matrix};

box<2> square(index_t y, index_t x, index_t n) { return {{y * n, x * n}, {(y + 1) * n, (x + 1) * n}}; }

// ---- 14, 16: data that many change ----------------------------------------------------------------------------------

TEST(nodes_dagger, a_hundred_additions_anywhere_add_up_exactly) {
  several_nodes n;
  const auto parts = n.a.filled<long>({100}, tiles(1), 3);
  const auto all = n.a.filled<long>({1}, tiles(1), 0L);
  n.a.for_each(grid(100), total, read(parts), reduce(all, std::plus<>(), 0L));
  EXPECT_EQ(all.read()(0), 300);
}

TEST(nodes_dagger, updates_of_one_object_run_where_they_are_sent_and_in_the_order_of_the_program) {
  several_nodes n;
  const auto x = n.a.filled<long>({16}, tiles(4), 1);
  long right = 1;
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    const long by = static_cast<long>(random() % 3);
    const char* const where[] = {"b", "c"};
    const bool multiply = by == 2;
    const task_options o = i % 3 == 2 ? task_options{.where = scope::here()} : on(where[i % 3]);
    if (multiply)
      n.a.spawn(o, times, update(x), 2L);
    else
      n.a.spawn(o, add, update(x), by);
    right = multiply ? right * 2 : right + by;
  }
  const auto v = x.read();
  for (index_t i = 0; i < 16; ++i) EXPECT_EQ(v(i), right);
  EXPECT_GT(tasks_of(n.a, "b"), 0u);
  EXPECT_GT(tasks_of(n.a, "c"), 0u);
}

TEST(nodes_dagger, what_was_copied_in_ends_where_it_came_from) {
  several_nodes n;
  std::vector<long> own(64);
  std::iota(own.begin(), own.end(), 0L);
  {
    const auto x = n.a.borrow<long>(std::span(own), {64}, tiles(16));
    n.a.for_each(on("b"), grid(64), add, update(x), 100L);
    n.a.for_each(on("c"), grid(64), times, update(x), 2L);
    n.a.wait_all();
  }
  ASSERT_TRUE(comes_true([&] { return n.a.report().arrays == 0; }));
  for (long i = 0; i < 64; ++i) EXPECT_EQ(own[static_cast<std::size_t>(i)], (i + 100) * 2);
}

// ---- 17: algorithms -------------------------------------------------------------------------------------------------

TEST(nodes_dagger, a_tiled_cholesky_is_that_of_one_serial_loop_on_one_to_three_nodes_of_one_or_two_threads) {
  constexpr index_t size = 120, tile = 30, count = size / tile;
  std::vector<double> start(size * size), right;
  std::mt19937 random(3);
  const auto at = [](index_t y, index_t x) { return static_cast<std::size_t>(y * size + x); };
  for (index_t y = 0; y < size; ++y)
    for (index_t x = 0; x <= y; ++x)
      start[at(y, x)] = start[at(x, y)] = static_cast<double>(random() % 100) / 100 + (x == y ? size : 0);
  right = start;
  for (index_t j = 0; j < size; ++j) {
    for (index_t k = 0; k < j; ++k) right[at(j, j)] -= right[at(j, k)] * right[at(j, k)];
    right[at(j, j)] = std::sqrt(right[at(j, j)]);
    for (index_t i = j + 1; i < size; ++i) {
      for (index_t k = 0; k < j; ++k) right[at(i, j)] -= right[at(i, k)] * right[at(j, k)];
      right[at(i, j)] /= right[at(j, j)];
    }
  }
  for (const int others : {0, 1, 2})
    for (const int threads : {1, 2}) {
      several_nodes n(others, threads);
      const auto a = n.a.filled<double>({size, size}, tiles(tile, tile), 0.0);
      {
        const auto v = a.update();
        for (index_t y = 0; y < size; ++y)
          for (index_t x = 0; x < size; ++x) v(y, x) = start[at(y, x)];
      }
      const auto t = [&](index_t y, index_t x) { return a.sub(square(y, x, tile)); };
      for (index_t k = 0; k < count; ++k) {
        n.a.spawn(factor, update(t(k, k)));
        for (index_t i = k + 1; i < count; ++i) n.a.spawn(solve, read(t(k, k)), update(t(i, k)));
        for (index_t i = k + 1; i < count; ++i)
          for (index_t j = k + 1; j <= i; ++j) n.a.spawn(subtract, read(t(i, k)), read(t(j, k)), update(t(i, j)));
      }
      const auto v = a.read();
      double off = 0;
      for (index_t y = 0; y < size; ++y)
        for (index_t x = 0; x <= y; ++x) off = std::max(off, std::abs(v(y, x) - right[at(y, x)]));
      EXPECT_LT(off, 1e-9) << others << " others, " << threads << " threads";
    }
}

// ---- 18: what ranks do ----------------------------------------------------------------------------------------------

TEST(nodes_dagger, three_nodes_that_each_change_their_part_of_one_matrix_give_what_one_loop_does) {
  several_nodes n;
  const auto a = n.a.filled<double>({8, 8}, tiles(8, 8), 1.0);
  n.a.spawn(on("b"), grow_matrix, update(a), 1.0, 1.0);
  n.a.spawn(on("c"), grow_matrix, update(a.sub(box<2>{{2, 2}, {6, 6}})), 2.0, 0.0);
  n.a.spawn({.where = scope::here()}, grow_matrix, update(a.sub(box<2>{{0, 4}, {4, 8}})), 3.0, 0.0);
  const auto v = a.read();
  for (index_t y = 0; y < 8; ++y)
    for (index_t x = 0; x < 8; ++x) {
      double right = 2;
      if (y >= 2 && y < 6 && x >= 2 && x < 6) right *= 2;
      if (y < 4 && x >= 4) right *= 3;
      EXPECT_EQ(v(y, x), right) << y << ", " << x;
    }
}

TEST(nodes_dagger, two_views_of_one_array_share_its_memory_there) {
  several_nodes n(1);
  const auto a = n.a.filled<double>({8, 8}, tiles(4, 4), 1.0);
  const auto left = a.sub(box<2>{{0, 0}, {4, 4}}), lower = a.sub(box<2>{{4, 0}, {8, 4}});
  n.a.spawn(on("b"), grow_matrix, update(left), 2.0, 0.0);
  n.a.spawn(on("b"), grow_matrix, update(lower), 3.0, 0.0);
  n.a.wait_all();
  EXPECT_EQ(n.b().report().arrays, 1u);
  EXPECT_EQ(n.b().report().bytes_allocated, 2 * 16 * sizeof(double));
  const auto v = a.read();
  EXPECT_EQ(v(0, 0), 2);
  EXPECT_EQ(v(7, 0), 3);
  EXPECT_EQ(v(0, 7), 1);
}

TEST(nodes_dagger, arrays_of_different_nodes_are_never_taken_for_each_other) {
  several_nodes n(2);
  // The first array of each node: whatever they are called inside, they are called the same.
  std::vector<array<long, 1>> all;
  runtime* const nodes[] = {&n.a, n.rest[0].get(), n.rest[1].get()};
  for (long i = 0; i < 3; ++i) all.push_back(nodes[i]->filled<long>({64}, tiles(16), 1000 * i));
  const char* const names[] = {"a", "b", "c"};
  for (int round = 0; round < 10; ++round)
    for (int from = 0; from < 3; ++from)
      for (int to = 0; to < 3; ++to)
        if (from != to)
          nodes[from]->for_each(on(names[to]), grid(64), add, update(all[static_cast<std::size_t>(from)]), 1L);
  for (long i = 0; i < 3; ++i) {
    const auto v = all[static_cast<std::size_t>(i)].read();
    for (index_t k = 0; k < 64; ++k) ASSERT_EQ(v(k), 1000 * i + 20);
  }
}

}  // namespace
