// What this file is for: results of tasks: waiting, chaining, coroutines, errors, and waits that can never end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <coroutine>
#include <future>
#include <memory>
#include <optional>
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

// ---- results --------------------------------------------------------------------------------------------------------

TEST(future, gives_the_result_of_its_task_again_and_again) {
  runtime rt(options{.threads = 1});
  auto f = rt.spawn([] { return std::string("forty-two"); });
  EXPECT_EQ(f.get(), "forty-two");
  const auto copy = f;
  EXPECT_EQ(&copy.get(), &f.get());
  EXPECT_TRUE(f.valid() && f.is_ready());
}

TEST(future, passes_its_value_to_a_later_task) {
  runtime rt(options{.threads = 2});
  auto a = rt.spawn([] { return 20; });
  auto b = rt.spawn([] { return std::string("22"); });
  auto c = rt.spawn([](int x, const std::string& y, int z) { return x + std::stoi(y) + z; }, a, b, 0);
  EXPECT_EQ(c.get(), 42);
}

TEST(future, carries_results_that_can_only_be_moved) {
  runtime rt(options{.threads = 1});
  std::unique_ptr<int> p = rt.spawn([] { return std::make_unique<int>(5); }).get();
  ASSERT_TRUE(p);
  EXPECT_EQ(*p, 5);
  auto kept = rt.spawn([] { return std::make_unique<int>(6); });
  EXPECT_EQ(*kept.get(), 6);
  EXPECT_EQ(rt.spawn([](const std::unique_ptr<int>& q) { return *q + 1; }, kept).get(), 7);
}

struct alignas(64) aligned {
  double value = 0;
};

TEST(future, carries_large_and_aligned_results) {
  runtime rt(options{.threads = 1});
  auto big = rt.spawn([] {
    std::array<int, 5000> a{};
    a[4999] = 3;
    return a;
  });
  EXPECT_EQ(big.get()[4999], 3);
  auto lined = rt.spawn([] { return aligned{2.5}; });
  EXPECT_EQ(lined.get().value, 2.5);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&lined.get()) % 64, 0u);
}

TEST(future, destroys_result_and_captures_exactly_once) {
  auto token = std::make_shared<int>(1);
  {
    runtime rt(options{.threads = 1});
    auto f = rt.spawn([token] { return token; });
    EXPECT_EQ(f.get(), token);
    auto g = rt.spawn([token, filler = std::array<char, 500>{}] { return filler.size() + 1; });
    EXPECT_EQ(g.get(), 501u);
    auto failed = rt.spawn([token]() -> std::shared_ptr<int> { throw std::runtime_error("no result"); });
    failed.wait();
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST(future, of_an_empty_handle_says_so) {
  future<int> none;
  EXPECT_FALSE(none.valid());
  EXPECT_FALSE(none.is_ready());
  EXPECT_EQ(code_of([&] { none.wait(); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { (void)none.get(); }), errc::bad_argument);
  runtime rt(options{.threads = 1});
  EXPECT_EQ(code_of([&] { rt.spawn([](int) {}, none); }), errc::bad_argument);
}

// ---- waiting --------------------------------------------------------------------------------------------------------

TEST(future, waits_no_longer_than_it_was_told) {
  runtime rt(options{.threads = 1});
  gate go;
  const test::opener always(go);
  auto f = rt.spawn([&] { return go.pass(); });
  EXPECT_FALSE(f.wait_for(std::chrono::milliseconds(1)));
  EXPECT_FALSE(f.wait_for(std::chrono::seconds(0)));
  go.open();
  EXPECT_TRUE(f.wait_for(test::patience));
  EXPECT_TRUE(f.wait_for(std::chrono::seconds(0)));
  EXPECT_TRUE(f.get());
}

TEST(future, may_be_waited_for_by_many_threads) {
  runtime rt(options{.threads = 1});
  gate go;
  const test::opener always(go);
  auto f = rt.spawn([&] { return go.pass() ? 11 : 0; });
  std::vector<std::future<int>> waiters;
  for (int i = 0; i < 8; ++i) waiters.push_back(std::async(std::launch::async, [f] { return f.get(); }));
  go.open();
  for (auto& w : waiters) EXPECT_EQ(w.get(), 11);
}

TEST(future, of_a_helping_waiter_gives_the_same) {
  for (const bool helps : {true, false}) {
    runtime rt(options{.threads = 1, .waiting_thread_helps = helps});
    for (int i = 0; i < 200; ++i) ASSERT_EQ(rt.spawn([i] { return i; }).get(), i);
  }
}

TEST(future, of_a_waiter_that_may_not_help_runs_on_a_worker) {
  runtime rt(options{.threads = 2, .waiting_thread_helps = false});
  for (int i = 0; i < 200; ++i)
    ASSERT_NE(rt.spawn([] { return std::this_thread::get_id(); }).get(), std::this_thread::get_id());
}

TEST(future, of_helping_waiters_never_runs_more_bodies_at_once_than_there_are_workers) {
  runtime rt(options{.threads = 2});
  std::atomic<int> now{0}, most{0};
  const auto body = [&] {
    const int n = now.fetch_add(1) + 1;
    for (int seen = most.load(); seen < n && !most.compare_exchange_weak(seen, n);) {
    }
    for (int i = 0; i < 50; ++i) std::this_thread::yield();
    now.fetch_sub(1);
  };
  {
    std::vector<std::jthread> clients;
    for (int c = 0; c < 6; ++c)
      clients.emplace_back([&] {
        for (int i = 0; i < 200; ++i) rt.spawn(body).get();
      });
  }
  EXPECT_LE(most.load(), 2);
  EXPECT_GE(most.load(), 1);
}

// ---- then and co_await ----------------------------------------------------------------------------------------------

TEST(then, runs_on_the_result) {
  runtime rt(options{.threads = 2});
  auto f = rt.spawn([] { return 6; }).then([](int x) { return x * 7; }).then([](int x) { return std::to_string(x); });
  EXPECT_EQ(f.get(), "42");
  std::atomic<int> order{0};
  rt.spawn([&] { order = 1; }).then([&] { order = order == 1 ? 2 : -1; }).get();
  EXPECT_EQ(order, 2);
}

TEST(then, fails_with_what_came_before) {
  runtime rt(options{.threads = 1});
  std::atomic<bool> ran{false};
  auto f = rt.spawn(task_options{.name = "first"}, []() -> int { throw std::runtime_error("no"); }).then([&](int) {
    ran = true;
  });
  const auto e = error_of([&] { f.get(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::dependency_failed);
  EXPECT_EQ(e->root, "first");
  EXPECT_FALSE(ran);
}

// The smallest coroutine: starts at once, belongs to nobody, must catch its own exceptions.
struct detached {
  struct promise_type {
    detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

detached add_up(runtime& rt, std::promise<std::pair<int, bool>>& answer) {
  const int a = co_await rt.spawn([] { return 1; });
  const bool on_worker = this_task::inside();
  const int b = co_await rt.spawn([](int x) { return x + 1; }, a);
  co_await rt.spawn([] {});
  answer.set_value({a + b, on_worker});
}

TEST(co_await, resumes_with_the_result) {
  runtime rt(options{.threads = 1});
  std::promise<std::pair<int, bool>> answer;
  auto answered = answer.get_future();
  add_up(rt, answer);
  ASSERT_EQ(answered.wait_for(test::patience), std::future_status::ready);
  EXPECT_EQ(answered.get().first, 3);
}

detached wait_for_go(future<bool> f, std::promise<std::thread::id>& where) {
  const bool went = co_await f;
  where.set_value(went ? std::this_thread::get_id() : std::thread::id());
}

TEST(co_await, of_an_unfinished_task_resumes_on_a_worker) {
  runtime rt(options{.threads = 1});
  gate go;
  const test::opener always(go);
  std::promise<std::thread::id> where;
  auto resumed = where.get_future();
  wait_for_go(rt.spawn([&] { return go.pass(); }), where);
  go.open();
  ASSERT_EQ(resumed.wait_for(test::patience), std::future_status::ready);
  const auto id = resumed.get();
  EXPECT_NE(id, std::thread::id());
  EXPECT_NE(id, std::this_thread::get_id());
}

detached catch_failure(future<int> f, std::promise<std::string>& answer) {
  std::string text;
  try {
    text = std::to_string(co_await f);
  } catch (const task_failed& e) {
    text = e.root_task();
  }
  answer.set_value(text);
}

TEST(co_await, throws_what_the_task_threw) {
  runtime rt(options{.threads = 1});
  std::promise<std::string> answer;
  auto answered = answer.get_future();
  catch_failure(rt.spawn(task_options{.name = "thrower"}, []() -> int { throw std::runtime_error("no"); }), answer);
  ASSERT_EQ(answered.wait_for(test::patience), std::future_status::ready);
  EXPECT_EQ(answered.get(), "thrower");
}

// ---- beyond the runtime ---------------------------------------------------------------------------------------------

TEST(future, outlives_its_runtime_with_the_result) {
  future<std::string> f;
  {
    runtime rt(options{.threads = 1});
    f = rt.spawn([] { return std::string(100, 'x'); });
    f.wait();
  }
  EXPECT_EQ(f.get(), std::string(100, 'x'));
  const auto copy = f;
  f = {};
  EXPECT_EQ(copy.get().size(), 100u);
}

TEST(future, of_a_kernel_that_never_ran_tells_its_name_after_its_runtime_is_gone) {
  const auto broken =
      kernel<inout<int, 1>>("broken").on(cpu, [](view<int, 1>) { throw std::runtime_error("as asked"); });
  const auto later = kernel<inout<int, 1>>("later").on(cpu, [](view<int, 1>) {});
  future<void> f;
  {
    runtime rt;
    auto a = rt.filled<int>({4}, tiles(4), 0);
    rt.spawn(broken, update(a));
    f = rt.spawn(later, update(a));
  }
  const auto e = test::error_of([&] { f.get(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::dependency_failed);
  EXPECT_EQ(e->task, "later");
  EXPECT_EQ(e->root, "broken");
}

TEST(future, of_a_task_that_never_ran_reports_that_the_runtime_stopped) {
  auto go = std::make_shared<gate>();
  auto ended = std::make_shared<gate>();
  auto started = std::make_shared<gate>();
  future<int> queued;
  {
    runtime rt(options{.threads = 1, .shutdown_timeout = std::chrono::milliseconds(10)});
    rt.spawn([go, ended, started] {
      started->open();
      (void)go->pass();
      ended->open();
    });
    ASSERT_TRUE(started->pass());
    queued = rt.spawn([] { return 1; });
  }
  EXPECT_EQ(code_of([&] { (void)queued.get(); }), errc::runtime_stopped);
  EXPECT_TRUE(queued.is_ready());
  EXPECT_EQ(code_of([&] { queued.then([](int) {}); }), errc::runtime_stopped);
  go->open();
  EXPECT_TRUE(ended->pass());
}

TEST(array, outlives_its_runtime_as_a_handle_only) {
  array<int, 1> a;
  {
    runtime rt(options{.threads = 1});
    a = rt.filled<int>({3}, tiles(3), 1, "a");
  }
  EXPECT_EQ(a.size(0), 3);
  EXPECT_EQ(code_of([&] { a.read(); }), errc::runtime_stopped);
}

// ---- waits that can never end ---------------------------------------------------------------------------------------

TEST(deadlock, of_a_task_that_waits_for_itself_is_diagnosed) {
  runtime rt(options{.threads = 2});
  gate known;
  future<int> own;
  own = rt.spawn([&] {
    if (!known.pass()) return -1;
    const auto e = code_of([&] { (void)own.get(); });
    return e ? static_cast<int>(*e) : -2;
  });
  known.open();
  EXPECT_EQ(own.get(), static_cast<int>(errc::would_deadlock));
}

TEST(deadlock, of_a_task_that_waits_for_one_that_needs_its_result_is_diagnosed) {
  runtime rt(options{.threads = 2});
  gate known;
  future<void> far;
  auto first = rt.spawn([&] {
    if (!known.pass()) return -1;
    const auto e = code_of([&] { far.wait(); });
    return e ? static_cast<int>(*e) : -2;
  });
  auto middle = rt.spawn([](int x) { return x + 1; }, first);
  far = rt.spawn([](int) {}, middle);
  known.open();
  EXPECT_EQ(first.get(), static_cast<int>(errc::would_deadlock));
  EXPECT_NO_THROW(far.get());
}

TEST(deadlock, of_a_task_that_waits_for_one_that_needs_its_data_is_diagnosed) {
  runtime rt(options{.threads = 2});
  gate known;
  future<int> reader;
  std::atomic<int> answer{0};
  auto a = rt.array<int>({1}, tiles(1), "a");
  auto writer = rt.spawn(
      [&](view<int, 1> v) {
        v(0) = 9;
        if (!known.pass()) return;
        const auto e = code_of([&] { reader.wait(); });
        answer = e ? static_cast<int>(*e) : -2;
      },
      write(a));
  reader = rt.spawn([](view<const int, 1> v) { return v(0); }, read(a));
  known.open();
  EXPECT_NO_THROW(writer.get());
  EXPECT_EQ(answer, static_cast<int>(errc::would_deadlock));
  EXPECT_EQ(reader.get(), 9);
}

TEST(deadlock, of_a_task_that_waits_for_all_is_diagnosed) {
  runtime rt(options{.threads = 1});
  auto f = rt.spawn([&] { return code_of([&] { rt.wait_all(); }); });
  EXPECT_EQ(f.get(), errc::would_deadlock);
}

// In templates one compiler forgot the destructor of what was assigned by value.
template <class Handle>
void empty_by_assignment(Handle& h) {
  h = {};
}

TEST(handles, let_go_of_what_they_named_when_an_empty_one_is_assigned) {
  runtime rt(options{.threads = 1});
  {
    auto a = rt.filled<int>({1}, tiles(1), 1);
    auto f = rt.spawn([](view<const int, 1> v) { return v(0); }, read(a));
    auto same = a;
    same = a;
    a = std::move(same);
    auto also = f;
    also = f;
    f = std::move(also);
    EXPECT_EQ(f.get(), 1);
    rt.wait_all();
    EXPECT_EQ(rt.report().records, 1u);
    EXPECT_EQ(rt.report().arrays, 1u);
    empty_by_assignment(a);
    empty_by_assignment(f);
    EXPECT_EQ(rt.report().records, 0u);
    EXPECT_EQ(rt.report().arrays, 0u);
  }
}

}  // namespace
