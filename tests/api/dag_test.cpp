// What this file is for: graphs that other runtimes of this class test (Dagger.jl, Dask distributed), as named cases.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::error_of;
using test::gate;
using troupe::index_t;

int add(int a, int b) { return a + b; }

TEST(dag, of_sums_and_a_product_by_handles_gives_four_five_twenty) {
  runtime rt(options{.threads = 2});
  std::atomic<int> before{0};
  auto a = rt.spawn([&](int x, int y) { return ++before, x + y; }, 2, 2);
  auto b = rt.spawn(
      [&](const std::vector<int>& v) {
        ++before;
        int sum = 0;
        for (int x : v) sum += x;
        return sum;
      },
      std::vector<int>{2, 1, 2});
  auto c = rt.spawn([&](int x, int y) { return before == 2 ? x * y : -1; }, a, b);
  EXPECT_EQ(c.get(), 20);
  EXPECT_EQ(a.get(), 4);
  EXPECT_EQ(b.get(), 5);
}

TEST(dag, with_a_failing_task_is_ready_and_throws_while_an_unrelated_one_succeeds) {
  runtime rt(options{.threads = 2});
  auto bad = rt.spawn([]() -> int { throw std::domain_error("test"); });
  EXPECT_NO_THROW(bad.wait());
  EXPECT_TRUE(bad.is_ready());
  EXPECT_THROW((void)bad.get(), task_failed);
  EXPECT_EQ(rt.spawn(add, 1, 1).get(), 2);
}

TEST(dag, below_a_failing_task_names_it_as_the_root_but_it_has_no_other_root) {
  runtime rt(options{.threads = 2});
  auto a = rt.spawn(task_options{.name = "A"}, []() -> int { throw std::runtime_error("text of A"); });
  auto b = rt.spawn(
      task_options{.name = "B"}, [](int x) { return x + 1; }, a);
  auto c = rt.spawn(
      task_options{.name = "C"}, [](int x, int y) { return x + y; }, b, rt.spawn(add, 1, 2));
  const auto of_c = error_of([&] { (void)c.get(); });
  ASSERT_TRUE(of_c && of_c->from_task);
  EXPECT_EQ(of_c->root, "A");
  EXPECT_TRUE(of_c->says("text of A") && of_c->says("C")) << of_c->text;
  const auto of_a = error_of([&] { (void)a.get(); });
  ASSERT_TRUE(of_a && of_a->from_task);
  EXPECT_EQ(of_a->root, of_a->task);
  EXPECT_EQ(of_a->code, errc::task_failed);
}

TEST(dag, with_a_failing_sink_leaves_its_upstreams_readable) {
  runtime rt(options{.threads = 2});
  auto x = rt.spawn(add, 1, 2);
  auto y = rt.spawn(add, x, 3);
  auto sink = rt.spawn([](int) -> int { throw std::runtime_error("sink"); }, y);
  EXPECT_THROW((void)sink.get(), task_failed);
  EXPECT_EQ(x.get(), 3);
  EXPECT_EQ(y.get(), 6);
}

TEST(dag, of_parent_and_child_pinned_to_one_processor_completes) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  const task_options pinned{.where = scope::executor("cpu:1")};
  auto parent = rt.spawn(pinned, [&] { return rt.spawn(pinned, add, 1, 2).get() + 1; });
  ASSERT_TRUE(parent.wait_for(test::patience));
  EXPECT_EQ(parent.get(), 4);
}

TEST(dag, of_sixty_four_diamonds_built_at_once_by_sixty_four_threads_is_right) {
  runtime rt(options{.threads = 2});
  constexpr int count = 64;
  std::vector<int> results(count);
  std::latch start(count);
  {
    std::vector<std::jthread> builders;
    for (int i = 0; i < count; ++i)
      builders.emplace_back([&, i] {
        start.arrive_and_wait();
        auto top = rt.spawn([i] { return i; });
        auto left = rt.spawn([](int x) { return x + 1; }, top);
        auto right = rt.spawn([](int x) { return 2 * x; }, top);
        results[static_cast<std::size_t>(i)] = rt.spawn(add, left, right).get();
      });
  }
  for (int i = 0; i < count; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)], 3 * i + 1);
}

TEST(dag, of_a_tree_reduction_of_a_thousand_ones_gives_a_thousand) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  std::vector<future<int>> level;
  for (int i = 0; i < 1000; ++i) level.push_back(rt.spawn([] { return 1; }));
  while (level.size() > 1) {
    std::vector<future<int>> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(rt.spawn(add, level[i], level[i + 1]));
    if (level.size() % 2) next.push_back(level.back());
    level = std::move(next);
  }
  EXPECT_EQ(level[0].get(), 1000);
}

TEST(dag, of_one_source_with_thirty_two_dependants_gives_each_its_value) {
  runtime rt(options{.threads = 2});
  gate go;
  const test::opener always(go);
  auto source = rt.spawn([&] { return go.pass() ? 10 : -1; });
  std::vector<future<int>> sinks;
  for (int i = 0; i < 32; ++i) sinks.push_back(rt.spawn(add, source, i));
  go.open();
  for (int i = 0; i < 32; ++i) EXPECT_EQ(sinks[static_cast<std::size_t>(i)].get(), 10 + i);
}

TEST(dag, of_long_tasks_that_are_cancelled_frees_the_processor_at_once) {
  runtime rt(options{.threads = 1});
  std::stop_source stop;
  gate busy;
  const task_options both{.stop = stop.get_token()};
  auto running = rt.spawn(both, [&](task_context& c) {
    busy.open();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    while (std::chrono::steady_clock::now() < end)
      if (c.stop_requested()) throw std::runtime_error("interrupted");
  });
  auto queued = rt.spawn(both, [] { return 1; });
  ASSERT_TRUE(busy.pass());
  stop.request_stop();
  EXPECT_TRUE(running.wait_for(std::chrono::seconds(10)));
  EXPECT_EQ(code_of([&] { (void)queued.get(); }), errc::cancelled);
  EXPECT_THROW(running.get(), task_failed);
  auto next = rt.spawn(add, 1, 1);
  EXPECT_TRUE(next.wait_for(std::chrono::seconds(10)));
  EXPECT_EQ(next.get(), 2);
}

TEST(dag, with_a_task_that_queries_itself_or_a_dependant_is_diagnosed) {
  runtime rt(options{.threads = 1});
  gate known;
  future<int> self, dependant;
  self = rt.spawn([&] {
    if (!known.pass()) return -1;
    const bool own = code_of([&] { (void)self.get(); }) == errc::would_deadlock;
    const bool below = code_of([&] { (void)dependant.get(); }) == errc::would_deadlock;
    return (own ? 1 : 0) + (below ? 2 : 0);
  });
  dependant = rt.spawn(add, self, 10);
  known.open();
  ASSERT_TRUE(self.wait_for(test::patience));
  EXPECT_EQ(self.get(), 3);
  EXPECT_EQ(dependant.get(), 13);
}

TEST(dag, of_twenty_tasks_scoped_in_turn_to_two_executors_runs_each_where_it_may) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  const scope one = scope::executor("cpu:0"), other = scope::executor("cpu:1");
  std::vector<future<std::string>> executors;
  for (int i = 0; i < 20; ++i)
    executors.push_back(rt.spawn(task_options{.where = i % 2 ? other : one},
                                 [](task_context& c) { return std::string(c.executor()); }));
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(executors[i].get(), i % 2 ? "cpu:1" : "cpu:0");
  EXPECT_EQ(code_of([&] { rt.spawn(task_options{.where = one & other}, [] {}); }), errc::no_executor);
  const scope narrowed = (one | other) & other;
  EXPECT_EQ(rt.spawn(task_options{.where = narrowed}, [](task_context& c) { return std::string(c.executor()); }).get(),
            "cpu:1");
}

// Never more run, of a hundred tasks that each need one A, than there are; all is given back.
TEST(dag, of_a_hundred_constrained_tasks_never_exceeds_the_quantity) {
  for (int amount : {1, 2}) {
    runtime rt(options{.threads = 4, .resources = {{"A", static_cast<double>(amount)}}});
    std::atomic<int> running{0}, most{0};
    for (int i = 0; i < 100; ++i)
      rt.spawn(task_options{.resources = {{"A", 1}}}, [&] {
        const int now = ++running;
        int seen = most.load();
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        std::this_thread::yield();
        --running;
      });
    rt.wait_all();
    EXPECT_LE(most, amount);
    for (const resource& r : rt.report().resources_free)
      if (r.name == "A") {
        EXPECT_EQ(r.amount, amount);
      }
  }
}

// Whether the constrained or the unconstrained task came first, the one of higher priority starts first.
TEST(dag, of_a_constrained_and_a_free_task_starts_the_one_of_higher_priority) {
  for (const bool constrained_first : {true, false})
    for (const bool constrained_wins : {true, false}) {
      runtime rt(options{.threads = 1, .resources = {{"A", 1}}});
      gate go, busy;
      const test::opener always(go);
      rt.spawn([&] {
        busy.open();
        (void)go.pass();
      });
      ASSERT_TRUE(busy.pass());
      std::string order;  // one worker: bodies do not overlap
      const task_options constrained{.priority = constrained_wins ? 2 : 1, .resources = {{"A", 1}}};
      const task_options unconstrained{.priority = constrained_wins ? 1 : 2};
      const auto c = [&] { order += 'c'; };
      const auto u = [&] { order += 'u'; };
      if (constrained_first) rt.spawn(constrained, c);
      rt.spawn(unconstrained, u);
      if (!constrained_first) rt.spawn(constrained, c);
      go.open();
      rt.wait_all();
      EXPECT_EQ(order, constrained_wins ? "cu" : "uc") << "constrained first: " << constrained_first;
    }
}

}  // namespace
