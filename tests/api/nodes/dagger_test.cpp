// What this file is for: on several nodes, what Dagger.jl promises of several processes, each behaviour by name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// tests/README.md has the list, and what does not apply. What it promises of data is in dagger_data_test.cpp.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <troupe/offer.hpp>

#include "nodes_apart.hpp"
#include "several_nodes.hpp"
#include "tests/api/gates.hpp"

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
constexpr auto sum = kernel<in<long, 1>, in<long, 1>, out<long, 1>>("dagger.sum")
                         .on(cpu, [](view<const long, 1> x, view<const long, 1> y, view<long, 1> z) {
                           for (index_t i = z.lo(0); i < z.hi(0); ++i) z(i) = x(i) + y(i);
                         });
constexpr auto product = kernel<in<long, 1>, in<long, 1>, out<long, 1>>("dagger.product")
                             .on(cpu, [](view<const long, 1> x, view<const long, 1> y, view<long, 1> z) {
                               for (index_t i = z.lo(0); i < z.hi(0); ++i) z(i) = x(i) * y(i);
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

const offer offered{set, add, sum, product, fail, long_task, fibonacci, parent, careless};

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

// ---- a worker that goes ---------------------------------------------------------------------------------------------

TEST(nodes_dagger, a_diamond_of_which_a_node_goes_in_the_middle_is_six_and_what_was_pinned_there_is_an_error) {
  nodes_apart n;
  runtime& a = n.a;
  const auto top = a.filled<long>({1}, tiles(1), 1), left = a.array<long>({1}, tiles(1)),
             right = a.array<long>({1}, tiles(1)), end = a.array<long>({1}, tiles(1)),
             pinned = a.filled<long>({1}, tiles(1), 0);
  const scope both = scope::at("b") | scope::here();
  begun = 0;
  a.spawn(on("b"), sum, read(top), read(top), write(left)).get();  // 2, which only b has
  a.spawn({.where = both}, set, write(right), 4L);
  const auto stays = a.spawn(on("b"), long_task, update(pinned));
  ASSERT_TRUE(comes_true([] { return begun == 1; }));
  n.part();  // for ever
  a.spawn({.where = both}, sum, read(left), read(right), write(end));
  EXPECT_EQ(end.read()(0), 6);
  ASSERT_TRUE(stays.wait_for(patience));
  EXPECT_THROW(stays.get(), error);
  EXPECT_THROW(a.spawn(on("b"), add, update(top), 1L), error);
}

}  // namespace
