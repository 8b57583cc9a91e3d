// What this file is for: tasks that spawn tasks and wait for them, on as few workers as there can be.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"
#include "tests/support/comes_true.hpp"

namespace {

using namespace troupe;
using test::gate;
using troupe::index_t;

TEST(nested, a_child_on_the_worker_of_its_waiting_parent_runs) {
  runtime rt(options{.threads = 1});
  auto parent = rt.spawn([&] { return rt.spawn([] { return 41; }).get() + 1; });
  EXPECT_TRUE(parent.wait_for(test::patience));
  EXPECT_EQ(parent.get(), 42);
}

TEST(nested, parent_and_child_pinned_to_one_executor_of_two_do_not_deadlock) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  for (const char* name : {"cpu:0", "cpu:1"}) {
    const task_options pinned{.where = scope::executor(name)};
    auto parent = rt.spawn(pinned, [&rt, pinned](task_context& c) {
      auto child = rt.spawn(pinned, [](task_context& inner) { return std::string(inner.executor()); });
      return std::string(c.executor()) + "+" + child.get();
    });
    ASSERT_TRUE(parent.wait_for(test::patience)) << name;
    EXPECT_EQ(parent.get(), std::string(name) + "+" + name);
  }
}

TEST(nested, a_chain_of_a_hundred_waiting_parents_ends) {
  runtime rt(options{.threads = 1});
  struct deep {
    static int go(runtime& r, int n) {
      return n == 0 ? 0 : 1 + r.spawn([&r, n] { return go(r, n - 1); }).get();
    }
  };
  auto f = rt.spawn([&] { return deep::go(rt, 100); });
  ASSERT_TRUE(f.wait_for(test::patience));
  EXPECT_EQ(f.get(), 100);
}

int fibonacci(runtime& rt, int n) {
  if (n < 2) return n;
  auto a = rt.spawn([&rt, n] { return fibonacci(rt, n - 1); });
  auto b = rt.spawn([&rt, n] { return fibonacci(rt, n - 2); });
  return a.get() + b.get();
}

TEST(nested, fibonacci_by_spawning_ends_on_one_worker) {
  runtime rt(options{.threads = 1});
  auto f = rt.spawn([&] { return fibonacci(rt, 10); });
  ASSERT_TRUE(f.wait_for(test::patience));
  EXPECT_EQ(f.get(), 55);
}

TEST(nested, fibonacci_of_fifteen_by_spawning_ends_on_two_workers) {
  runtime rt(options{.threads = 2});
  auto f = rt.spawn([&] { return fibonacci(rt, 15); });
  ASSERT_TRUE(f.wait_for(test::patience));
  EXPECT_EQ(f.get(), 610);
}

TEST(nested, children_may_write_what_the_parent_reads_back) {
  runtime rt(options{.threads = 1});
  auto parent = rt.spawn([&] {
    auto a = rt.array<int>({100}, tiles(10), "scratch");
    rt.for_each(
        grid(100),
        [](view<int, 1> v) {
          for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) = static_cast<int>(i);
        },
        write(a));
    const auto seen = a.read();
    int sum = 0;
    for (index_t i = 0; i < 100; ++i) sum += seen(i);
    return sum;
  });
  ASSERT_TRUE(parent.wait_for(test::patience));
  EXPECT_EQ(parent.get(), 4950);
}

TEST(nested, threads_beyond_those_that_are_kept_end_when_a_crowd_has_waited) {
  options o{.threads = 2};
  o.spare_threads_max = 3;
  runtime rt(o);
  const int before = rt.report().threads;
  constexpr int crowd = 40;
  std::atomic<int> waiting{0};
  gate go;
  const test::opener at_end(go);
  auto last = rt.spawn({.resources = {{"cpu", 0}}}, [&] { EXPECT_TRUE(go.pass()); });
  std::vector<future<void>> all;
  for (int i = 0; i < crowd; ++i)
    all.push_back(rt.spawn([&, last] {
      if (++waiting == crowd) go.open();
      last.get();
    }));
  for (auto& f : all) f.get();
  EXPECT_EQ(waiting, crowd);
  EXPECT_TRUE(test::comes_true([&] { return rt.report().threads <= before + o.spare_threads_max; }))
      << rt.report().threads << " threads, " << before << " before";
  EXPECT_EQ(rt.spawn([] { return 5; }).get(), 5);
}

TEST(nested, bodies_of_a_for_each_may_wait) {
  runtime rt(options{.threads = 2});
  auto a = rt.array<int>({20}, tiles(1), "a");
  auto done = rt.for_each(
      grid(20), [&](view<int, 1> v) { v(v.lo(0)) = rt.spawn([i = v.lo(0)] { return static_cast<int>(i * i); }).get(); },
      write(a));
  ASSERT_TRUE(done.wait_for(test::patience));
  done.get();
  EXPECT_EQ(a.read()(19), 361);
}

TEST(nested, a_failure_of_a_child_reaches_the_parent_that_waits) {
  runtime rt(options{.threads = 1});
  auto parent = rt.spawn([&] {
    auto child = rt.spawn(task_options{.name = "child"}, []() -> int { throw std::runtime_error("naughty"); });
    const auto e = test::error_of([&] { (void)child.get(); });
    return e ? e->task : std::string();
  });
  EXPECT_EQ(parent.get(), "child");
  auto careless = rt.spawn(task_options{.name = "careless"}, [&] {
    rt.spawn(task_options{.name = "child"}, []() -> int { throw std::runtime_error("naughty"); }).get();
  });
  const auto e = test::error_of([&] { careless.get(); });
  ASSERT_TRUE(e && e->from_task);
  EXPECT_EQ(e->task, "careless");
  EXPECT_TRUE(e->says("naughty")) << e->text;
}

// ---- giving the core away -------------------------------------------------------------------------------------------

TEST(yield_core, lets_another_task_run_on_the_only_worker) {
  runtime rt(options{.threads = 1});
  gate go;
  auto waiting = rt.spawn([&] { return yield_core([&] { return go.pass(); }); });
  auto opening = rt.spawn([&] { go.open(); });
  EXPECT_TRUE(waiting.get());
  EXPECT_TRUE(opening.is_ready());
}

TEST(yield_core, never_lets_more_bodies_hold_the_core_than_there_are_workers) {
  runtime rt(options{.threads = 2});
  std::atomic<int> holding{0}, most{0};
  const auto hold = [&] {
    const int now = ++holding;
    int seen = most.load();
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    for (int i = 0; i < 50; ++i) std::this_thread::yield();
    --holding;
  };
  std::vector<future<void>> tasks;
  for (int i = 0; i < 60; ++i)
    tasks.push_back(rt.spawn([&] {
      hold();
      yield_core([] { std::this_thread::yield(); });
      hold();
    }));
  for (auto& t : tasks) t.get();
  EXPECT_LE(most, 2);
}

TEST(yield_core, outside_a_task_just_calls) {
  EXPECT_EQ(yield_core([] { return 5; }), 5);
  EXPECT_FALSE(this_task::inside());
  EXPECT_FALSE(this_task::stop_requested());
  EXPECT_STREQ(this_task::executor(), "");
}

TEST(this_task, knows_its_executor_inside_a_body) {
  runtime rt(options{.threads = 1});
  auto f = rt.spawn([] { return this_task::inside() ? std::string(this_task::executor()) : std::string("outside"); });
  EXPECT_EQ(f.get(), "cpu:0");
}

// ---- the bound on tasks in flight -----------------------------------------------------------------------------------

TEST(in_flight_bound, does_not_block_tasks_that_spawn) {
  runtime rt(options{.threads = 1, .tasks_in_flight_max = 4});
  auto parent = rt.spawn([&] {
    std::vector<future<int>> children;
    for (int i = 0; i < 100; ++i) children.push_back(rt.spawn([i] { return i; }));
    int sum = 0;
    for (auto& c : children) sum += c.get();
    return sum;
  });
  ASSERT_TRUE(parent.wait_for(test::patience));
  EXPECT_EQ(parent.get(), 4950);
}

TEST(in_flight_bound, does_not_block_destructors_of_what_tasks_return_or_capture) {
  for (const int threads : {1, 2})
    for (const std::size_t bound : {1, 4, 64}) {
      runtime rt(options{.threads = threads, .tasks_in_flight_max = bound});
      std::atomic<int> ran{0};
      const auto spawns_at_its_end = [&] {
        return std::shared_ptr<int>(new int, [&](const int* p) {
          delete p;
          rt.spawn([&] { ++ran; });
        });
      };
      for (int i = 0; i < 300; ++i) {
        rt.spawn(spawns_at_its_end);
        rt.spawn({.name = "named"}, spawns_at_its_end);
        rt.spawn([captured = spawns_at_its_end()] {});
      }
      rt.wait_all();
      EXPECT_EQ(ran, 900) << threads << " threads, bound " << bound;
    }
}

TEST(in_flight_bound, keeps_a_spawning_thread_from_running_ahead) {
  constexpr int bound = 8;
  runtime rt(options{.threads = 2, .tasks_in_flight_max = bound});
  std::atomic<int> ended{0};
  int ahead = 0;
  for (int i = 1; i <= 2000; ++i) {
    rt.spawn([&] { ++ended; });
    ahead = std::max(ahead, i - ended.load());  // a body has ended before its task counts as finished
  }
  rt.wait_all();
  EXPECT_EQ(ended, 2000);
  EXPECT_LE(ahead, bound);
}

// A thread that is held back has not handed its task over yet, so no body that runs waits for one that is held back.
TEST(in_flight_bound, a_body_may_wait_for_the_thread_that_has_spawned_it) {
  constexpr int spawners = 4, rounds = 300;
  for (const std::size_t bound : {1, 2, 3}) {
    runtime rt(options{.threads = 1, .tasks_in_flight_max = bound});
    std::atomic<int> passed{0};
    std::vector<std::thread> all;
    for (int s = 0; s < spawners; ++s)
      all.emplace_back([&] {
        for (int i = 0; i < rounds; ++i) {
          auto has_returned = std::make_shared<test::gate>();
          rt.spawn([&passed, has_returned] { passed += has_returned->pass(); });
          has_returned->open();
        }
      });
    for (std::thread& t : all) t.join();
    rt.wait_all();
    EXPECT_EQ(passed, spawners * rounds);
  }
}

TEST(in_flight_bound, lets_a_thread_go_on_that_keeps_the_views_for_which_all_tasks_wait) {
  constexpr std::size_t bound = 8;
  runtime rt(options{.threads = 2, .tasks_in_flight_max = bound});
  std::vector<array<int, 1>> arrays;
  std::vector<decltype(arrays[0].write())> views;
  for (int i = 0; i < 3; ++i) {
    arrays.push_back(rt.filled<int>({1}, tiles(1), i));
    views.push_back(arrays.back().write());
  }
  for (int n = 0; n < 18; ++n)
    rt.spawn([](view<int, 1> v) { ++v(0); }, update(arrays[static_cast<std::size_t>(n % 3)]));
  EXPECT_GT(rt.report().spawned - rt.report().finished, 2 * bound) << "two of them one by one";
  for (auto& v : views) v(0) = 1000;
  views.clear();
  rt.wait_all();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(arrays[static_cast<std::size_t>(i)].read()(0), 1006);
}

TEST(in_flight_bound, of_one_still_lets_everything_through) {
  runtime rt(options{.threads = 1, .tasks_in_flight_max = 1});
  auto a = rt.filled<int>({1}, tiles(1), 0, "a");
  for (int i = 0; i < 50; ++i) rt.spawn([](view<int, 1> v) { ++v(0); }, update(a));
  EXPECT_EQ(a.read()(0), 50);
}

}  // namespace
