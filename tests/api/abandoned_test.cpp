// What this file is for: what threads that wait see of bodies that a shutdown leaves behind.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <chrono>
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"

namespace {

using namespace std::chrono_literals;
using test::code_of;
using test::error_of;
using test::gate;
using test::opener;
using troupe::errc;

// A runtime of which one body does not return, until its gate is opened; what waits for that body outlives them.
struct stubborn {
  std::shared_ptr<gate> go = std::make_shared<gate>();
  std::shared_ptr<gate> begun = std::make_shared<gate>();
  auto body() const {
    return [go = go, begun = begun] {
      begun->open();
      (void)go->pass();
      return 7;
    };
  }
};

TEST(abandoned, the_future_of_a_body_that_is_left_behind_reports_it_at_once) {
  stubborn s;
  const opener at_the_end(*s.go);
  troupe::future<int> f;
  {
    troupe::runtime rt({.threads = 1, .shutdown_timeout = 10ms});
    f = rt.spawn({.name = "stubborn"}, s.body());
    ASSERT_TRUE(s.begun->pass());
  }
  EXPECT_TRUE(f.is_ready());
  EXPECT_TRUE(f.wait_for(0s));
  const auto e = error_of([&] { (void)f.get(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::runtime_stopped);
  EXPECT_EQ(e->task, "stubborn");
  EXPECT_TRUE(e->says("'stubborn'")) << e->text;
  s.go->open();
}

TEST(abandoned, what_a_body_returns_after_it_was_left_behind_is_nobodys_result) {
  stubborn s;
  const opener at_the_end(*s.go);
  troupe::runtime rt({.threads = 1});
  auto ended = std::make_shared<gate>();
  struct teller {
    std::shared_ptr<gate> ended;
    ~teller() {
      if (ended) ended->open();
    }
    teller(std::shared_ptr<gate> e) : ended(std::move(e)) {}
    teller(teller&&) = default;
    teller(const teller&) = delete;
  };
  auto f = rt.spawn([body = s.body(), t = teller(ended)] { return body(); });
  ASSERT_TRUE(s.begun->pass());
  EXPECT_FALSE(rt.shutdown(0ms).complete);
  EXPECT_EQ(code_of([&] { (void)f.get(); }), errc::runtime_stopped);
  s.go->open();
  ASSERT_TRUE(ended->pass());  // its captures are gone: all that is left is to say that it is done
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(code_of([&] { (void)f.get(); }), errc::runtime_stopped);
    std::this_thread::yield();
  }
}

TEST(abandoned, what_comes_after_a_running_body_counts_as_abandoned_though_it_was_in_no_queue) {
  stubborn s;
  const opener at_the_end(*s.go);
  troupe::runtime rt({.threads = 1});
  auto a = rt.filled<int>({8}, troupe::tiles(8), 1);
  rt.spawn(
      {.name = "stubborn"}, [body = s.body()](troupe::view<int, 1>) { (void)body(); }, update(a));
  ASSERT_TRUE(s.begun->pass());
  for (int i = 0; i < 3; ++i) rt.spawn([](troupe::view<int, 1>) {}, update(a));
  const auto report = rt.shutdown(0ms);
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(report.still_running, std::vector<std::string>{"stubborn"});
  EXPECT_EQ(report.queued_abandoned, 3u);
}

TEST(abandoned, all_that_comes_after_a_body_that_is_left_behind_reports_it_at_once) {
  stubborn s;
  const opener at_the_end(*s.go);
  troupe::runtime rt({.threads = 2});
  auto a = rt.filled<int>({8}, troupe::tiles(2), 1);
  auto first = rt.spawn([body = s.body()](troupe::view<int, 1>) { (void)body(); }, update(a));
  ASSERT_TRUE(s.begun->pass());
  auto by_data = rt.spawn([](troupe::view<const int, 1>) {}, read(a));
  auto by_future = rt.spawn([](troupe::view<const int, 1>, int) {}, read(a), rt.spawn([](auto&&) { return 1; }, first));
  auto chunks = rt.for_each(
      troupe::grid(8), [](troupe::view<int, 1>) {}, update(a));
  auto then = chunks.then([] { return 3; });
  std::optional<errc> of_view;
  gate waits;
  std::thread reads([&] {
    waits.open();
    of_view = code_of([&] { (void)a.read(); });
  });
  ASSERT_TRUE(waits.pass());
  const auto report = rt.shutdown(10ms);
  EXPECT_EQ(report.still_running.size(), 1u);
  reads.join();  // the body still runs
  EXPECT_EQ(of_view, errc::runtime_stopped);
  EXPECT_EQ(code_of([&] { first.get(); }), errc::runtime_stopped);
  EXPECT_EQ(code_of([&] { by_data.get(); }), errc::runtime_stopped);
  EXPECT_EQ(code_of([&] { by_future.get(); }), errc::runtime_stopped);
  EXPECT_EQ(code_of([&] { chunks.get(); }), errc::runtime_stopped);
  EXPECT_EQ(code_of([&] { (void)then.get(); }), errc::runtime_stopped);
  EXPECT_FALSE(s.go->is_open());
}

TEST(abandoned, bodies_that_wait_for_one_that_is_left_behind_are_released) {
  stubborn s;
  const opener at_the_end(*s.go);
  std::optional<errc> inside, outside;
  troupe::runtime rt({.threads = 2});
  auto inner = rt.spawn(s.body());
  ASSERT_TRUE(s.begun->pass());
  gate waits;
  auto outer = rt.spawn([&] {
    waits.open();
    inside = code_of([&] { (void)inner.get(); });
  });
  ASSERT_TRUE(waits.pass());
  std::thread thread([&] { outside = code_of([&] { (void)inner.get(); }); });
  rt.shutdown(10ms);
  thread.join();
  EXPECT_EQ(outside, errc::runtime_stopped);
  outer.wait();
  s.go->open();
  while (rt.report().threads != 0) std::this_thread::yield();
  EXPECT_EQ(inside, errc::runtime_stopped);
}

TEST(abandoned, who_waits_for_everything_learns_that_bodies_were_left_behind) {
  stubborn s;
  const opener at_the_end(*s.go);
  troupe::runtime rt({.threads = 1});
  rt.spawn(s.body());
  ASSERT_TRUE(s.begun->pass());
  std::optional<errc> code;
  gate waits;
  std::thread all([&] {
    waits.open();
    code = code_of([&] { rt.wait_all(); });
  });
  ASSERT_TRUE(waits.pass());
  rt.shutdown(10ms);
  all.join();
  EXPECT_EQ(code, errc::runtime_stopped);
  EXPECT_FALSE(rt.wait_all_for(1h));
}

TEST(abandoned, who_waits_at_the_bound_of_tasks_in_flight_is_released) {
  stubborn s;
  const opener at_the_end(*s.go);
  troupe::runtime rt({.threads = 1, .tasks_in_flight_max = 1});
  auto first = rt.spawn(s.body());
  ASSERT_TRUE(s.begun->pass());
  std::optional<errc> code;
  gate waits;
  std::thread more([&] {
    waits.open();
    code = code_of([&] {
      for (;;) rt.spawn([] {});
    });
  });
  ASSERT_TRUE(waits.pass());
  rt.shutdown(10ms);
  more.join();
  EXPECT_EQ(code, errc::runtime_stopped);
}

// A body that runs on the thread which waits for it, with the runtime gone when it returns.
TEST(abandoned, a_body_that_a_waiting_thread_runs_may_be_left_behind) {
  for (int round = 0; round < 20; ++round) {
    stubborn s;
    const opener at_the_end(*s.go);
    auto rt = std::make_unique<troupe::runtime>(troupe::options{.threads = 1, .shutdown_timeout = 0ms});
    auto f = rt->spawn(s.body());
    std::thread waits([f] { (void)code_of([&] { (void)f.get(); }); });
    ASSERT_TRUE(s.begun->pass());
    rt.reset();
    EXPECT_EQ(code_of([&] { (void)f.get(); }), errc::runtime_stopped);
    s.go->open();
    waits.join();
  }
}

// ---- coroutines -----------------------------------------------------------------------------------------------------

struct coroutine {
  struct promise_type {
    coroutine get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

template <class T>
coroutine awaits(troupe::future<T> f, std::optional<errc>& code, gate& resumed) {
  try {
    (void)co_await f;
  } catch (const troupe::error& e) {
    code = e.code();
  }
  resumed.open();
}

TEST(abandoned, a_coroutine_that_waits_for_a_body_that_is_left_behind_is_resumed) {
  for (int round = 0; round < 20; ++round) {
    stubborn s;
    const opener at_the_end(*s.go);
    std::optional<errc> of_running, of_queued;
    gate running, queued;
    {
      troupe::runtime rt({.threads = 1, .shutdown_timeout = 0ms});
      auto f = rt.spawn(s.body());
      ASSERT_TRUE(s.begun->pass());
      awaits(f, of_running, running);
      awaits(rt.spawn([](int v) { return v; }, f), of_queued, queued);
    }
    EXPECT_TRUE(running.is_open());
    EXPECT_TRUE(queued.is_open());
    EXPECT_EQ(of_running, errc::runtime_stopped);
    EXPECT_EQ(of_queued, errc::runtime_stopped);
    s.go->open();
  }
}

coroutine goes_on(troupe::runtime& rt, troupe::future<int> f, std::optional<int>& value, std::optional<errc>& code) {
  try {
    value = co_await f;
    co_await rt.spawn([] {});
  } catch (const troupe::error& e) {
    code = e.code();
  }
}

// The task is done, the coroutine's turn has not come: it goes on with the value, and finds the runtime closed.
TEST(abandoned, a_coroutine_whose_turn_has_not_come_is_resumed_with_the_value) {
  stubborn s;
  const opener at_the_end(*s.go);
  std::optional<int> value;
  std::optional<errc> code;
  {
    troupe::runtime rt({.threads = 1, .shutdown_timeout = 0ms, .waiting_thread_helps = false});
    gate first, first_begun;
    auto f = rt.spawn([&] {
      first_begun.open();
      (void)first.pass();
      return 5;
    });
    ASSERT_TRUE(first_begun.pass());
    goes_on(rt, f, value, code);
    rt.spawn({.priority = 1}, s.body());
    first.open();
    ASSERT_TRUE(s.begun->pass());
  }
  EXPECT_EQ(value, 5);
  EXPECT_EQ(code, errc::runtime_stopped);
}

TEST(abandoned, a_coroutine_that_waits_when_the_runtime_is_closed_goes_on_with_the_error) {
  stubborn s;
  const opener at_the_end(*s.go);
  std::optional<errc> code;
  gate resumed;
  troupe::runtime rt({.threads = 1});
  auto f = rt.spawn(s.body());
  ASSERT_TRUE(s.begun->pass());
  rt.shutdown(0ms);
  awaits(f, code, resumed);
  EXPECT_TRUE(resumed.is_open());
  EXPECT_EQ(code, errc::runtime_stopped);
}

}  // namespace
