// What this file is for: on several nodes, what Dagger.jl promises of several processes, each behaviour by name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// tests/README.md has the list, and what does not apply.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include <troupe/offer.hpp>

#include "gates.hpp"
#include "several_nodes.hpp"
#include "tests/support/proxy.hpp"

namespace {

using namespace troupe;
using namespace test;
using test::comes_true;
using troupe::index_t;

constexpr auto set = kernel<out<long, 1>, long>("dagger.set").on(cpu, [](view<long, 1> a, long v) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = v;
});
constexpr auto add = kernel<inout<long, 1>, long>("dagger.add").on(cpu, [](view<long, 1> a, long v) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += v;
});
constexpr auto times = kernel<inout<long, 1>, long>("dagger.times").on(cpu, [](view<long, 1> a, long v) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) *= v;
});
constexpr auto sum = kernel<in<long, 1>, in<long, 1>, out<long, 1>>("dagger.sum")
                         .on(cpu, [](view<const long, 1> x, view<const long, 1> y, view<long, 1> z) {
                           for (index_t i = z.lo(0); i < z.hi(0); ++i) z(i) = x(i) + y(i);
                         });
constexpr auto product = kernel<in<long, 1>, in<long, 1>, out<long, 1>>("dagger.product")
                             .on(cpu, [](view<const long, 1> x, view<const long, 1> y, view<long, 1> z) {
                               for (index_t i = z.lo(0); i < z.hi(0); ++i) z(i) = x(i) * y(i);
                             });
constexpr auto total =
    kernel<in<long, 1>, red<long, 1>>("dagger.total").on(cpu, [](view<const long, 1> a, view<long, 1> t) {
      for (index_t i = a.lo(0); i < a.hi(0); ++i) t(0) += a(i);
    });
constexpr auto fail =
    kernel<inout<long, 1>>("dagger.fail").on(cpu, [](view<long, 1>) { throw std::domain_error("text of A"); });
constexpr auto known_here = kernel<inout<long, 1>>("dagger.known_here").on(cpu, [](view<long, 1> a) { ++a(a.lo(0)); });

std::atomic<int> begun{0};
constexpr auto long_task = kernel<inout<long, 1>>("dagger.long_task").on(cpu, [](task_context& c, view<long, 1>) {
  ++begun;
  while (!c.stop_requested()) std::this_thread::yield();
  throw std::runtime_error("stopped");
});

// Bodies that spawn, on the node where they run.
runtime* there = nullptr;
long fibonacci_by_spawning(long n) {
  if (n < 2) return n;
  const auto x = there->spawn({.where = scope::here()}, [n] { return fibonacci_by_spawning(n - 1); });
  const auto y = there->spawn({.where = scope::here()}, [n] { return fibonacci_by_spawning(n - 2); });
  return x.get() + y.get();
}
constexpr auto fibonacci = kernel<out<long, 1>, long>("dagger.fibonacci").on(cpu, [](view<long, 1> a, long n) {
  a(a.lo(0)) = fibonacci_by_spawning(n);
});
// `back`: to the node that sent it.
constexpr auto parent = kernel<out<long, 1>, int>("dagger.parent").on(cpu, [](view<long, 1> a, int back) {
  const auto mine = there->filled<long>({1}, tiles(1), 40);
  const task_options where = back ? on("a") : task_options{.where = scope::here()};
  there->spawn(where, add, update(mine), 2L).get();
  a(a.lo(0)) = mine.read()(0);
});
constexpr auto careless = kernel<out<long, 1>>("dagger.careless").on(cpu, [](view<long, 1>) {
  const auto mine = there->filled<long>({1}, tiles(1), 40);
  there->spawn(on("a"), fail, update(mine)).get();
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

const offer offered{set,       add,    times,    sum,    product, total,    fail,       long_task,
                    fibonacci, parent, careless, factor, solve,   subtract, grow_matrix};

box<2> square(index_t y, index_t x, index_t n) { return {{y * n, x * n}, {(y + 1) * n, (x + 1) * n}}; }

// ---- 1, 2, 3: values and failures -----------------------------------------------------------------------------------

TEST(nodes_dagger, a_sum_of_sums_and_their_product_on_three_nodes_are_four_five_twenty) {
  several_nodes n;
  const auto one = [&](long v) { return n.a.filled<long>({1}, tiles(1), v); };
  const auto a = one(0), b = one(2), c = one(0);
  n.a.spawn(on("b"), sum, read(one(2)), read(one(2)), write(a));
  n.a.spawn(on("c"), add, update(b), 3L);
  n.a.spawn(on("b"), product, read(a), read(b), write(c));
  EXPECT_EQ(c.read()(0), 20);
  EXPECT_EQ(a.read()(0), 4);
  EXPECT_EQ(b.read()(0), 5);
  EXPECT_EQ(tasks_of(n.a, "b") + tasks_of(n.a, "c"), 3u);
}

TEST(nodes_dagger, a_task_that_fails_elsewhere_is_ready_and_throws_and_a_later_one_succeeds_there) {
  several_nodes n(1);
  const auto x = n.a.filled<long>({1}, tiles(1), 1), y = n.a.filled<long>({1}, tiles(1), 1);
  const auto bad = n.a.spawn(on("b"), fail, update(x));
  EXPECT_NO_THROW(bad.wait());
  EXPECT_TRUE(bad.is_ready());
  EXPECT_THROW(bad.get(), task_failed);
  n.a.spawn(on("b"), add, update(y), 1L).get();
  EXPECT_EQ(y.read()(0), 2);
}

TEST(nodes_dagger, below_a_task_that_fails_elsewhere_each_names_it_as_root_and_what_is_above_stays_readable) {
  several_nodes n;
  const auto x = n.a.filled<long>({1}, tiles(1), 1), y = n.a.filled<long>({1}, tiles(1), 1),
             z = n.a.filled<long>({1}, tiles(1), 1);
  n.a.spawn(on("c"), add, update(y), 6L);
  const auto a = n.a.spawn({.where = scope::at("b"), .name = "A"}, fail, update(x));
  const auto b = n.a.spawn({.where = scope::at("c"), .name = "B"}, sum, read(x), read(y), write(z));
  const auto own = error_of([&] { a.get(); });
  ASSERT_TRUE(own && own->from_task);
  EXPECT_EQ(own->task, "A");
  EXPECT_EQ(own->root, "A");
  EXPECT_TRUE(own->says("text of A")) << own->text;
  const auto below = error_of([&] { b.get(); });
  ASSERT_TRUE(below && below->from_task);
  EXPECT_EQ(below->task, "B");
  EXPECT_EQ(below->root, "A");
  EXPECT_TRUE(below->says("text of A")) << below->text;
  EXPECT_EQ(y.read()(0), 7);
}

// ---- 4, 5: tasks that spawn elsewhere -------------------------------------------------------------------------------

TEST(nodes_dagger, a_parent_pinned_to_a_node_with_one_thread_spawns_a_child_there_and_waits_for_it) {
  several_nodes n(1, 1);
  there = &n.b();
  const auto x = n.a.array<long>({1}, tiles(1));
  const auto f = n.a.spawn(on("b"), parent, write(x), 0);
  ASSERT_TRUE(f.wait_for(patience));
  EXPECT_EQ(x.read()(0), 42);
}

TEST(nodes_dagger, a_task_elsewhere_may_spawn_one_on_the_node_that_sent_it) {
  several_nodes n(1);
  there = &n.b();
  const auto x = n.a.array<long>({1}, tiles(1));
  const auto f = n.a.spawn(on("b"), parent, write(x), 1);
  ASSERT_TRUE(f.wait_for(patience));
  EXPECT_EQ(x.read()(0), 42);
  EXPECT_EQ(tasks_of(n.b(), "a"), 1u);
}

TEST(nodes_dagger, fibonacci_of_ten_by_spawning_on_another_node_is_55) {
  several_nodes n(1, 1);
  there = &n.b();
  const auto x = n.a.array<long>({1}, tiles(1));
  const auto f = n.a.spawn(on("b"), fibonacci, write(x), 10L);
  ASSERT_TRUE(f.wait_for(patience));
  EXPECT_EQ(x.read()(0), 55);
}

TEST(nodes_dagger, the_failure_of_a_child_on_a_third_hand_reaches_who_waits_with_its_text) {
  several_nodes n(1);
  there = &n.b();
  const auto x = n.a.array<long>({1}, tiles(1));
  const auto f = n.a.spawn(on("b"), careless, write(x));
  ASSERT_TRUE(f.wait_for(patience));
  const auto e = error_of([&] { f.get(); });
  ASSERT_TRUE(e && e->from_task);
  EXPECT_TRUE(e->says("text of A")) << e->text;
}

// ---- 6: code that only some nodes have ------------------------------------------------------------------------------

TEST(nodes_dagger, a_function_that_only_one_node_knows_runs_there_and_is_an_error_elsewhere_and_nothing_hangs) {
  several_nodes n(1);
  const auto x = n.a.filled<long>({1}, tiles(1), 0);
  int ran = 0, refused = 0;
  for (int i = 0; i < 20; ++i) {
    try {
      const auto f = n.a.spawn(i % 2 == 0 ? task_options{.where = scope::here()} : on("b"), known_here, update(x));
      ASSERT_TRUE(f.wait_for(patience));
      f.get();
      ++ran;
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::no_executor);
      ++refused;
    }
  }
  EXPECT_EQ(ran, 10);
  EXPECT_EQ(refused, 10);
  EXPECT_EQ(x.read()(0), 10);
}

// ---- 7, 8: graphs ---------------------------------------------------------------------------------------------------

TEST(nodes_dagger, sixty_four_threads_that_build_diamonds_over_two_nodes_get_each_its_own_result) {
  several_nodes n(1);
  std::vector<long> results(64);
  std::vector<std::thread> threads;
  for (long i = 0; i < 64; ++i)
    threads.emplace_back([&, i] {
      const auto top = n.a.filled<long>({1}, tiles(1), i), left = n.a.array<long>({1}, tiles(1)),
                 right = n.a.array<long>({1}, tiles(1)), end = n.a.array<long>({1}, tiles(1));
      const scope both = scope::at("b") | scope::here();
      n.a.spawn({.where = both}, sum, read(top), read(top), write(left));
      n.a.spawn({.where = both}, set, write(right), i + 1);
      n.a.spawn(i % 2 == 0 ? on("b") : task_options{}, sum, read(left), read(right), write(end));
      results[static_cast<std::size_t>(i)] = end.read()(0);
    });
  for (auto& t : threads) t.join();
  for (long i = 0; i < 64; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)], 3 * i + 1);
  EXPECT_GE(tasks_of(n.a, "b"), 32u);
}

TEST(nodes_dagger, a_tree_of_sums_of_a_thousand_ones_over_three_nodes_is_a_thousand) {
  several_nodes n;
  std::vector<array<long, 1>> level;
  for (int i = 0; i < 1000; ++i) level.push_back(n.a.filled<long>({1}, tiles(1), 1));
  for (int turn = 0; level.size() > 1;) {
    std::vector<array<long, 1>> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) {
      next.push_back(n.a.array<long>({1}, tiles(1)));
      n.a.spawn(on(++turn % 2 == 0 ? "b" : "c"), sum, read(level[i]), read(level[i + 1]), write(next.back()));
    }
    if (level.size() % 2 != 0) next.push_back(level.back());
    level = next;
  }
  EXPECT_EQ(level.front().read()(0), 1000);
}

TEST(nodes_dagger, one_source_with_thirty_two_dependants_on_two_nodes_gives_each_its_value) {
  several_nodes n;
  const auto source = n.a.array<long>({1}, tiles(1));
  n.a.spawn(on("b"), set, write(source), 10L);
  std::vector<array<long, 1>> all;
  for (long i = 0; i < 32; ++i) {
    all.push_back(n.a.filled<long>({1}, tiles(1), 0));
    const auto own = n.a.filled<long>({1}, tiles(1), i);
    n.a.spawn(on(i % 2 == 0 ? "b" : "c"), sum, read(source), read(own), write(all.back()));
  }
  for (long i = 0; i < 32; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].read()(0), 10 + i);
}

// ---- 9: cancellation ------------------------------------------------------------------------------------------------

TEST(nodes_dagger, a_queued_and_a_running_task_elsewhere_that_are_cancelled_end_and_the_next_one_runs_at_once) {
  several_nodes n(1, 1);
  begun = 0;
  std::stop_source stop;
  const auto x = n.a.filled<long>({1}, tiles(1), 0), y = n.a.filled<long>({1}, tiles(1), 0),
             z = n.a.filled<long>({1}, tiles(1), 0);
  const auto running = n.a.spawn({.where = scope::at("b"), .stop = stop.get_token()}, long_task, update(x));
  ASSERT_TRUE(comes_true([] { return begun == 1; }));
  const auto queued = n.a.spawn({.where = scope::at("b"), .stop = stop.get_token()}, long_task, update(y));
  stop.request_stop();
  ASSERT_TRUE(running.wait_for(patience));
  ASSERT_TRUE(queued.wait_for(patience));
  EXPECT_THROW(running.get(), task_failed);
  EXPECT_THROW(queued.get(), task_failed);
  EXPECT_EQ(begun, 1);
  const auto next = n.a.spawn(on("b"), add, update(z), 1L);
  ASSERT_TRUE(next.wait_for(patience));
  EXPECT_EQ(z.read()(0), 1);
}

// ---- 11: scopes -----------------------------------------------------------------------------------------------------

TEST(nodes_dagger, twenty_tasks_scoped_in_turn_to_two_nodes_run_each_on_its_own_and_one_may_use_what_both_have) {
  several_nodes n;
  std::vector<array<long, 1>> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(n.a.array<long>({1}, tiles(1)));
    n.a.spawn(on(i % 2 == 0 ? "b" : "c"), set, write(all.back()), static_cast<long>(i));
  }
  n.a.wait_all();
  EXPECT_EQ(tasks_of(n.a, "b"), 10u);
  EXPECT_EQ(tasks_of(n.a, "c"), 10u);
  // Scopes are the tasks', not the data's: what is there comes.
  const auto both = n.a.array<long>({1}, tiles(1));
  n.a.spawn(on("b"), sum, read(all[18]), read(all[19]), write(both));
  EXPECT_EQ(both.read()(0), 37);
}

TEST(nodes_dagger, scopes_of_nodes_unite_and_intersect_and_an_empty_one_is_an_error_that_says_to_widen_it) {
  several_nodes n;
  const auto x = n.a.filled<long>({1}, tiles(1), 0);
  const scope b = scope::at("b"), c = scope::at("c");
  n.a.spawn({.where = (b | c) & c}, add, update(x), 1L).get();
  EXPECT_EQ(tasks_of(n.a, "c"), 1u);
  n.a.spawn({.where = (scope::here() | b) & (b | c)}, add, update(x), 1L).get();
  EXPECT_EQ(tasks_of(n.a, "b"), 1u);
  try {
    n.a.spawn({.where = b & c}, add, update(x), 1L);
    FAIL() << "nothing was thrown";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::no_executor);
    EXPECT_NE(std::string(e.what()).find("widen"), std::string::npos) << e.what();
  }
}

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
  // Each node's first array: whatever they are called inside, they are called the same.
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

// ---- a worker that goes ---------------------------------------------------------------------------------------------

TEST(nodes_dagger, a_diamond_of_which_a_node_goes_in_the_middle_is_six_and_what_was_pinned_there_is_an_error) {
  auto between = std::make_unique<support::proxy>();
  options o = node_options("a");
  o.cluster.announce = {between->address()};
  runtime a(o);
  const std::string address = a.addresses().front();
  between->forward_to(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  o = node_options("b", {between->address()});
  o.cluster.listen.clear();  // so that it can only be reached through the proxy
  runtime b(o);
  ASSERT_TRUE(a.wait_for_nodes(1, 20s));
  const auto top = a.filled<long>({1}, tiles(1), 1), left = a.array<long>({1}, tiles(1)),
             right = a.array<long>({1}, tiles(1)), end = a.array<long>({1}, tiles(1)),
             pinned = a.filled<long>({1}, tiles(1), 0);
  const scope both = scope::at("b") | scope::here();
  begun = 0;
  a.spawn(on("b"), sum, read(top), read(top), write(left)).get();  // 2, which only b has
  a.spawn({.where = both}, set, write(right), 4L);
  const auto stays = a.spawn(on("b"), long_task, update(pinned));
  ASSERT_TRUE(comes_true([] { return begun == 1; }));
  between.reset();  // for ever
  a.spawn({.where = both}, sum, read(left), read(right), write(end));
  EXPECT_EQ(end.read()(0), 6);
  ASSERT_TRUE(stays.wait_for(patience));
  EXPECT_THROW(stays.get(), error);
  EXPECT_THROW(a.spawn(on("b"), add, update(top), 1L), error);
}

}  // namespace
