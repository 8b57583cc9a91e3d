// What this file is for: where and when tasks run: scopes, resources, priorities, and the explanation afterwards.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::error_of;
using test::gate;
using troupe::index_t;

std::string where_am_i(task_context& c) { return c.executor(); }

// ---- scopes ---------------------------------------------------------------------------------------------------------

TEST(balance, of_groups_holds_when_one_body_takes_for_ever) {
  // The two groups are given their part of what is predicted to be short. The first body waits until all others are
  // done: also those that were to run after it on its own worker.
  runtime rt(options{.threads = 2, .core_groups = 2});
  constexpr int n = 200;
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> done{0};
    std::atomic<bool> first{true};
    gate all;
    const test::opener always(all);
    bool passed = false;
    for (int i = 0; i < n; ++i)
      rt.spawn([&] {
        if (first.exchange(false))
          passed = all.pass();
        else if (done.fetch_add(1) + 1 == n - 1)
          all.open();
      });
    rt.wait_all();
    EXPECT_TRUE(passed);
    EXPECT_EQ(done.load(), n - 1);
  }
}

TEST(scope, decides_on_which_of_two_core_groups_a_task_runs) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  const scope zero = scope::executor("cpu:0"), one = scope::executor("cpu:1");
  for (int i = 0; i < 20; ++i) {
    const std::string expected = i % 2 ? "cpu:1" : "cpu:0";
    EXPECT_EQ(rt.spawn(task_options{.where = i % 2 ? one : zero}, where_am_i).get(), expected);
    EXPECT_EQ(rt.spawn(task_options{.where = (zero | one) & (i % 2 ? one : zero)}, where_am_i).get(), expected);
    EXPECT_EQ(rt.spawn(task_options{.where = scope::cpu() & (i % 2 ? one : zero)}, where_am_i).get(), expected);
    EXPECT_EQ(rt.spawn(task_options{.where = scope::any() & (i % 2 ? one : zero)}, where_am_i).get(), expected);
  }
}

TEST(scope, holds_for_tasks_that_take_turns_on_one_array) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  auto a = rt.filled<int>({1}, tiles(1), 0, "a");
  std::vector<future<std::string>> executors;
  for (int i = 0; i < 20; ++i)
    executors.push_back(rt.spawn(
        task_options{.where = scope::executor(i % 2 ? "cpu:1" : "cpu:0")},
        [](task_context& c, view<int, 1> v) {
          ++v(0);
          return std::string(c.executor());
        },
        update(a)));
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(executors[i].get(), i % 2 ? "cpu:1" : "cpu:0");
  EXPECT_EQ(a.read()(0), 20);
}

TEST(scope, of_both_groups_uses_both) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  test::meeting both(2);
  const task_options anywhere{.where = scope::executor("cpu:0") | scope::executor("cpu:1")};
  const auto body = [&](task_context& c) { return both.arrive_and_wait() ? std::string(c.executor()) : "alone"; };
  auto first = rt.spawn(anywhere, body);
  auto second = rt.spawn(anywhere, body);
  std::vector<std::string> executors{first.get(), second.get()};
  std::sort(executors.begin(), executors.end());
  EXPECT_EQ(executors, (std::vector<std::string>{"cpu:0", "cpu:1"}));
}

TEST(scope, that_nothing_fits_is_an_error_listing_the_executors) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  const scope zero = scope::executor("cpu:0"), one = scope::executor("cpu:1");
  std::atomic<bool> ran{false};
  for (const scope& nowhere : {scope::executor("cpu:7"), zero & one, scope::gpu(), scope::kind(device_kind::opencl),
                               scope::gpu() & scope::cpu(), scope::executor("")}) {
    const auto e = error_of([&] { rt.spawn(task_options{.where = nowhere}, [&] { ran = true; }); });
    ASSERT_TRUE(e);
    EXPECT_FALSE(e->from_task);
    EXPECT_EQ(e->code, errc::no_executor);
    EXPECT_TRUE(e->says("cpu:0") && e->says("cpu:1")) << e->text;
  }
  rt.wait_all();
  EXPECT_FALSE(ran);
  EXPECT_EQ(rt.spawn(task_options{.where = scope::gpu() | one}, where_am_i).get(), "cpu:1");
}

TEST(scope, of_a_kernel_without_a_body_for_any_executor_is_an_error) {
  static constexpr auto bodiless = kernel<inout<int, 1>>("bodiless");
  runtime rt(options{.threads = 1});
  auto a = rt.filled<int>({1}, tiles(1), 0, "a");
  const auto e = error_of([&] { rt.spawn(bodiless, update(a)); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::no_executor);
  EXPECT_TRUE(e->says("bodiless")) << e->text;
}

// ---- resources ------------------------------------------------------------------------------------------------------

double amount_of(const std::vector<resource>& list, const std::string& name) {
  for (const auto& r : list)
    if (r.name == name) return r.amount;
  return -1;
}

TEST(resources, are_never_held_by_more_tasks_than_there_are) {
  runtime rt(options{.threads = 4, .core_groups = 2, .resources = {{"io", 2}}});
  std::atomic<int> holding{0}, most{0};
  const auto body = [&] {
    const int now = ++holding;
    int seen = most.load();
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    for (int i = 0; i < 20; ++i) std::this_thread::yield();
    --holding;
  };
  for (int i = 0; i < 100; ++i) rt.spawn(task_options{.resources = {{"io", 1}}}, body);
  rt.wait_all();
  EXPECT_LE(most, 2);
  EXPECT_EQ(amount_of(rt.report().resources_free, "io"), 2);
}

TEST(resources, let_as_many_tasks_run_together_as_there_are) {
  runtime rt(options{.threads = 4, .resources = {{"io", 2}}});
  test::meeting both(2);
  const task_options one{.resources = {{"io", 1}}};
  auto first = rt.spawn(one, [&] { return both.arrive_and_wait(); });
  auto second = rt.spawn(one, [&] { return both.arrive_and_wait(); });
  EXPECT_TRUE(first.get() && second.get());
}

TEST(resources, may_be_fractions_and_several) {
  runtime rt(options{.threads = 4, .resources = {{"memory", 1.0}, {"io", 3}}});
  std::atomic<int> quarters{0}, most{0};
  for (int i = 0; i < 60; ++i) {
    const int share = i % 3 + 1;
    rt.spawn(task_options{.resources = {{"memory", share / 4.0}, {"io", 1}}}, [&, share] {
      const int now = quarters += share;
      int seen = most.load();
      while (seen < now && !most.compare_exchange_weak(seen, now)) {
      }
      std::this_thread::yield();
      quarters -= share;
    });
  }
  rt.wait_all();
  EXPECT_LE(most, 4);
  EXPECT_EQ(amount_of(rt.report().resources_free, "memory"), 1.0);
  EXPECT_EQ(amount_of(rt.report().resources_free, "io"), 3);
}

TEST(resources, declared_on_a_kernel_hold_for_every_call) {
  static const auto licensed = kernel<inout<int, 1>>("licensed").on(cpu, [](view<int, 1> v) { ++v(v.lo(0)); });
  static const resource needs[] = {{"licence", 1}};
  const auto limited = licensed.needs(needs);
  {
    runtime rt(options{.threads = 2, .resources = {{"licence", 1}}});
    auto a = rt.filled<int>({10}, tiles(1), 0, "a");
    rt.for_each(grid(10), limited, update(a)).get();
    EXPECT_EQ(a.read()(9), 1);
    rt.wait_all();
    EXPECT_EQ(amount_of(rt.report().resources_free, "licence"), 1);
  }
  runtime poor(options{.threads = 1});
  auto a = poor.filled<int>({1}, tiles(1), 0, "a");
  EXPECT_EQ(code_of([&] { poor.spawn(limited, update(a)); }), errc::no_resource);
}

TEST(resources, of_a_failing_task_are_given_back) {
  runtime rt(options{.threads = 1, .resources = {{"io", 1}}});
  for (int i = 0; i < 5; ++i)
    rt.spawn(task_options{.resources = {{"io", 1}}}, [] { throw std::runtime_error("no"); }).wait();
  rt.wait_all();
  EXPECT_EQ(amount_of(rt.report().resources_free, "io"), 1);
}

TEST(resources, that_do_not_exist_or_are_too_few_are_an_error_at_the_call) {
  runtime rt(options{.threads = 2, .resources = {{"io", 2}}});
  const auto unknown = error_of([&] { rt.spawn(task_options{.resources = {{"recorded", 1}}}, [] {}); });
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->code, errc::no_resource);
  EXPECT_TRUE(unknown->says("recorded")) << unknown->text;
  const auto greedy = error_of([&] { rt.spawn(task_options{.resources = {{"io", 3}}}, [] {}); });
  ASSERT_TRUE(greedy);
  EXPECT_EQ(greedy->code, errc::no_resource);
  EXPECT_TRUE(greedy->says("io")) << greedy->text;
  EXPECT_TRUE(code_of([&] { rt.spawn(task_options{.resources = {{"io", -1}}}, [] {}); }));
}

TEST(resources, a_task_without_a_core_runs_while_all_workers_are_busy) {
  runtime rt(options{.threads = 1});
  gate go;
  const test::opener always(go);
  auto busy = rt.spawn([&] { return go.pass(); });
  auto waiting = rt.spawn(task_options{.resources = {{"cpu", 0}}}, [&] { go.open(); });
  EXPECT_TRUE(waiting.wait_for(test::patience));
  EXPECT_TRUE(busy.get());
}

// ---- priorities -----------------------------------------------------------------------------------------------------

TEST(priority, lets_a_late_task_start_before_those_that_wait_longer) {
  runtime rt(options{.threads = 1});
  gate go, busy;
  const test::opener always(go);
  rt.spawn([&] {
    busy.open();
    (void)go.pass();
  });
  ASSERT_TRUE(busy.pass());
  std::mutex lock;
  std::vector<int> order;
  const auto note = [&](int what) {
    return [&, what] {
      const std::lock_guard hold(lock);
      order.push_back(what);
    };
  };
  for (int i = 0; i < 5; ++i) rt.spawn(note(i));
  rt.spawn(task_options{.priority = -1}, note(-1));
  rt.spawn(task_options{.priority = 3}, note(30));
  rt.spawn(task_options{.priority = 7}, note(70));
  go.open();
  rt.wait_all();
  EXPECT_EQ(order, (std::vector<int>{70, 30, 0, 1, 2, 3, 4, -1}));
}

// A thread takes tasks of a kernel that has been short together; when the first of them suddenly is not, one of a
// higher priority that comes meanwhile goes before the others all the same.
TEST(priority, goes_before_what_a_thread_has_taken_and_not_begun) {
  runtime rt(options{.threads = 1});
  gate go, busy, begun, end;
  const test::opener always(go), always_ends(end);
  std::mutex lock;
  std::vector<int> order;
  const auto note = [&](int what) {
    const std::lock_guard hold(lock);
    order.push_back(what);
  };
  std::atomic<bool> is_long{false};
  const auto usual = [&](int what) {
    if (is_long && what == 0) {
      begun.open();
      (void)end.pass();
    }
    note(what);
  };
  for (int i = 0; i < 1000; ++i) rt.spawn(usual, -1);  // so that it is known to be short
  rt.wait_all();
  order.clear();
  rt.spawn([&] {
    busy.open();
    (void)go.pass();
  });
  ASSERT_TRUE(busy.pass());
  is_long = true;
  for (int i = 0; i < 8; ++i) rt.spawn(usual, i);
  (void)rt.report();  // all are ready
  go.open();
  ASSERT_TRUE(begun.pass());
  rt.spawn(task_options{.priority = 1}, note, 100);
  rt.spawn(task_options{.priority = -1}, note, -100);
  (void)rt.report();
  end.open();
  rt.wait_all();
  EXPECT_EQ(order, (std::vector<int>{0, 100, 1, 2, 3, 4, 5, 6, 7, -100}));
}

// The urgent task waits for one of those that a thread has taken together, and of which the next take long.
TEST(priority, goes_before_the_rest_of_the_batch_that_made_it_ready) {
  using namespace std::chrono_literals;
  struct setting {
    int usual_priority, urgent_priority;
    bool all_are_long;  // or all but the one that makes the urgent task ready
  };
  for (const auto& [usual_priority, urgent_priority, all_are_long] :
       {setting{0, 1, true}, setting{-1, 1, true}, setting{-1, 0, true}, setting{-1, 0, false}}) {
    runtime rt(options{.threads = 1});
    auto a = rt.filled<int>({1}, tiles(1), 0, "a");
    gate go, busy;
    const test::opener always(go);
    std::mutex lock;
    std::vector<int> order;
    std::atomic<bool> is_long{false};
    const auto usual = [&](int what) {
      const auto until = std::chrono::steady_clock::now() + 1ms;
      while (is_long && (what != 0 || all_are_long) && std::chrono::steady_clock::now() < until) continue;
      const std::lock_guard hold(lock);
      order.push_back(what);
    };
    const auto urgent = [&](view<const int, 1>) {
      const std::lock_guard hold(lock);
      order.push_back(100);
    };
    const auto first = [&](view<int, 1> v) {
      v(0) = 1;
      usual(0);
    };
    // So that all are known to be short.
    for (int i = 0; i < 1000; ++i) rt.spawn(task_options{.priority = usual_priority}, usual, -1);
    for (int i = 0; i < 1000; ++i) rt.spawn(task_options{.priority = usual_priority}, first, write(a));
    for (int i = 0; i < 100; ++i) rt.spawn(task_options{.priority = urgent_priority}, urgent, read(a));
    rt.wait_all();
    order.clear();
    rt.spawn([&] {
      busy.open();
      (void)go.pass();
    });
    ASSERT_TRUE(busy.pass());
    is_long = true;
    rt.spawn(task_options{.priority = usual_priority}, first, write(a));
    // Few, so that another one would be worth keeping behind them.
    for (int i = 1; i <= 3; ++i) rt.spawn(task_options{.priority = usual_priority}, usual, i);
    rt.spawn(task_options{.priority = urgent_priority}, urgent, read(a));
    (void)rt.report();
    go.open();
    rt.wait_all();
    EXPECT_EQ(order, (std::vector<int>{0, 100, 1, 2, 3})) << usual_priority << " and " << urgent_priority;
  }
}

TEST(priority, decides_who_gets_a_scarce_quantity_first) {
  runtime rt(options{.threads = 2, .resources = {{"io", 1}}});
  gate go, busy;
  const test::opener always(go);
  rt.spawn(task_options{.resources = {{"io", 1}}}, [&] {
    busy.open();
    (void)go.pass();
  });
  ASSERT_TRUE(busy.pass());
  std::mutex lock;
  std::vector<int> order;
  for (int i = 0; i < 6; ++i)
    rt.spawn(task_options{.priority = i, .resources = {{"io", 1}}}, [&, i] {
      const std::lock_guard hold(lock);
      order.push_back(i);
    });
  go.open();
  rt.wait_all();
  EXPECT_EQ(order, (std::vector<int>{5, 4, 3, 2, 1, 0}));
}

// ---- explain --------------------------------------------------------------------------------------------------------

TEST(explain, lists_every_candidate_and_marks_the_chosen_one) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  auto a = rt.filled<float>({64}, tiles(64), 1.0f, "a");
  auto f = rt.spawn(
      task_options{.name = "chosen"}, [](view<float, 1> v) { v(0) = 2; }, update(a));
  f.get();
  const explanation why = rt.explain(f);
  EXPECT_EQ(why.task, "chosen");
  ASSERT_EQ(why.candidates.size(), 2u);
  EXPECT_EQ(std::count_if(why.candidates.begin(), why.candidates.end(), [](const auto& c) { return c.chosen; }), 1);
  for (const auto& c : why.candidates) {
    EXPECT_TRUE(c.executor == "cpu:0" || c.executor == "cpu:1");
    EXPECT_EQ(c.chosen, c.executor == why.executor);
  }
  const std::string text = why.text();
  EXPECT_NE(text.find("chosen"), std::string::npos) << text;
  EXPECT_NE(text.find("cpu:0"), std::string::npos) << text;
  EXPECT_NE(text.find("cpu:1"), std::string::npos) << text;
}

TEST(explain, lists_only_what_the_scope_allows) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  auto f = rt.spawn(task_options{.where = scope::executor("cpu:1")}, [] {});
  f.get();
  const explanation why = rt.explain(f);
  ASSERT_EQ(why.candidates.size(), 1u);
  EXPECT_EQ(why.candidates[0].executor, "cpu:1");
  EXPECT_EQ(why.executor, "cpu:1");
}

}  // namespace
