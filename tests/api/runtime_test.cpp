// What this file is for: the life of a runtime: options, moves, several in a process, shutdown, leaving the host alone.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using std::chrono::milliseconds;
using test::code_of;
using test::error_of;
using test::gate;
using troupe::index_t;
using clock = std::chrono::steady_clock;

// ---- options --------------------------------------------------------------------------------------------------------

TEST(options, that_make_no_sense_are_refused) {
  const std::pair<const char*, options> wrong[] = {
      {"negative threads", {.threads = -1}},
      {"no core group", {.core_groups = 0}},
      {"negative core groups", {.core_groups = -3}},
      {"nothing may be in flight", {.tasks_in_flight_max = 0}},
      {"a quantity below zero", {.resources = {{"io", -1}}}},
      {"a quantity without a name", {.resources = {{"", 1}}}},
      {"a quantity twice", {.resources = {{"io", 1}, {"io", 2}}}},
      {"a negative time to shut down", {.shutdown_timeout = milliseconds(-1)}},
      {"a negative time to spin", {.spin = std::chrono::microseconds(-1)}},
      {"a negative time to look for what comes",
       {.cluster = {.cluster_name = "x", .insecure_loopback = true, .spin = std::chrono::microseconds(-1)}}},
      {"negative spare threads", {.spare_threads_max = -1}},
  };
  for (const auto& [what, o] : wrong) {
    const auto e = error_of([&o = o] { runtime rt(o); });
    ASSERT_TRUE(e) << what;
    EXPECT_EQ(e->code, errc::bad_argument) << what;
    EXPECT_FALSE(e->text.empty());
  }
}

TEST(options, by_default_give_at_least_one_worker_in_one_group) {
  runtime rt;
  const auto executors = rt.executors();
  ASSERT_EQ(executors.size(), 1u);
  EXPECT_GE(executors[0].slots, 1);
  EXPECT_EQ(rt.spawn([] { return 1; }).get(), 1);
}

TEST(options, say_how_workers_are_dealt_out_over_core_groups) {
  for (const auto& [threads, groups] : {std::pair{4, 2}, std::pair{5, 2}, std::pair{3, 3}, std::pair{1, 1}}) {
    runtime rt(options{.threads = threads, .core_groups = groups});
    const auto executors = rt.executors();
    ASSERT_EQ(executors.size(), static_cast<std::size_t>(groups));
    int slots = 0;
    for (int g = 0; g < groups; ++g) {
      const auto& e = executors[static_cast<std::size_t>(g)];
      EXPECT_EQ(e.name, "cpu:" + std::to_string(g));
      EXPECT_EQ(e.kind, device_kind::cpu);
      EXPECT_GE(e.slots, threads / groups);
      slots += e.slots;
    }
    EXPECT_EQ(slots, threads);
  }
}

TEST(options, that_bind_threads_still_run_tasks) {
  runtime rt(options{.threads = 2, .core_groups = 2, .bind_threads = true});
  EXPECT_EQ(rt.spawn([] { return 4; }).get(), 4);
}

TEST(arrays, that_are_empty_handles_say_so) {
  const array<int, 1> none;
  EXPECT_EQ(none.size(0), 0);
  EXPECT_EQ(none.volume(), 0);
  EXPECT_EQ(code_of([&] { (void)none.sub({{0}, {1}}); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { (void)none.name(); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { (void)none.tile(0); }), errc::bad_argument);
}

TEST(arrays, of_impossible_sizes_are_refused) {
  runtime rt(options{.threads = 1});
  EXPECT_EQ(code_of([&] { rt.array<int>({-1}, tiles(1)); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { rt.array<int>({4}, tiles(0)); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { rt.array<int>({4, 4}, tiles(2, -2)); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { rt.adopt(std::vector<int>(5), {2, 3}, tiles(1, 1)); }), errc::bad_argument);
}

// ---- counters -------------------------------------------------------------------------------------------------------

TEST(report, counts_tasks_failures_and_arrays) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<int>({4}, tiles(2), 0, "a");
  for (int i = 0; i < 10; ++i) rt.spawn([] {});
  rt.spawn([] { throw std::runtime_error("no"); });
  rt.wait_all();
  const auto report = rt.report();
  EXPECT_EQ(report.spawned, 11u);
  EXPECT_EQ(report.finished, 11u);
  EXPECT_EQ(report.arrays, 1u);
  EXPECT_GE(report.threads, 2);
  ASSERT_EQ(report.executors.size(), 1u);
  EXPECT_EQ(report.executors[0].tasks, 11u);
  EXPECT_EQ(report.executors[0].failed, 1u);
}

TEST(report, shows_no_records_once_futures_are_dropped) {
  runtime rt(options{.threads = 2});
  {
    std::vector<future<int>> futures;
    for (int i = 0; i < 100; ++i) futures.push_back(rt.spawn([i] { return i; }));
    rt.wait_all();
    EXPECT_GE(rt.report().records, 100u);
  }
  EXPECT_EQ(rt.report().records, 0u);
}

TEST(wait_all, waits_for_everything_and_throws_nothing) {
  runtime rt(options{.threads = 2});
  gate go;
  const test::opener always(go);
  auto slow = rt.spawn([&] { return go.pass(); });
  rt.spawn([] { throw std::runtime_error("no"); });
  EXPECT_FALSE(rt.wait_all_for(milliseconds(1)));
  go.open();
  EXPECT_NO_THROW(rt.wait_all());
  EXPECT_TRUE(slow.is_ready());
  EXPECT_TRUE(rt.wait_all_for(milliseconds(0)));
}

// ---- several, moved, many -------------------------------------------------------------------------------------------

TEST(runtime, lives_beside_another_one) {
  runtime one(options{.threads = 1}), two(options{.threads = 1, .core_groups = 1});
  test::meeting both(2);
  auto a = one.spawn([&] { return both.arrive_and_wait(); });
  auto b = two.spawn([&] { return both.arrive_and_wait(); });
  EXPECT_TRUE(a.get() && b.get());
  // A task of one may use the other.
  auto across = one.spawn([&] { return two.spawn([] { return 5; }).get(); });
  ASSERT_TRUE(across.wait_for(test::patience));
  EXPECT_EQ(across.get(), 5);
}

TEST(runtime, keeps_its_tasks_and_arrays_when_moved) {
  gate go;
  const test::opener always(go);
  runtime first(options{.threads = 1});
  auto a = first.filled<int>({2}, tiles(2), 7, "a");
  auto pending = first.spawn([&](view<int, 1> v) { v(0) = go.pass() ? 8 : -1; }, update(a));
  runtime second(std::move(first));
  go.open();
  EXPECT_EQ(second.spawn([](view<const int, 1> v) { return v(0); }, read(a)).get(), 8);
  EXPECT_NO_THROW(pending.get());
}

TEST(runtime, that_is_assigned_to_stops_what_it_was) {
  runtime rt(options{.threads = 1});
  auto old = rt.spawn([] { return 1; });
  rt = runtime(options{.threads = 2});
  EXPECT_EQ(old.get(), 1);
  EXPECT_EQ(rt.executors()[0].slots, 2);
  EXPECT_EQ(rt.spawn([] { return 2; }).get(), 2);
}

TEST(runtime, may_come_and_go_many_times) {
  for (int i = 0; i < 50; ++i) {
    runtime rt(options{.threads = 2, .core_groups = 2});
    if (i % 2) {
      ASSERT_EQ(rt.spawn([i] { return i; }).get(), i);
    }
  }
}

TEST(runtime, finishes_what_was_spawned_before_it_ends) {
  std::atomic<int> ran{0};
  {
    runtime rt(options{.threads = 2});
    for (int i = 0; i < 500; ++i) rt.spawn([&] { ++ran; });
  }
  EXPECT_EQ(ran, 500);
}

// ---- shutdown -------------------------------------------------------------------------------------------------------

TEST(shutdown, with_nothing_left_is_complete_and_may_be_repeated) {
  runtime rt(options{.threads = 1});
  rt.spawn([] {});
  const auto first = rt.shutdown(test::patience);
  EXPECT_TRUE(first.complete);
  EXPECT_EQ(first.finished, 1u);
  EXPECT_EQ(first.queued_abandoned, 0u);
  EXPECT_TRUE(first.still_running.empty());
  EXPECT_TRUE(rt.shutdown(milliseconds(0)).complete);
  EXPECT_EQ(code_of([&] { rt.spawn([] {}); }), errc::runtime_stopped);
}

// Held by value in bodies that outlive their runtime.
struct stubborn {
  gate started, go, ended;
  std::atomic<bool> asked{false};
};

TEST(shutdown, names_what_it_abandons) {
  auto shared = std::make_shared<stubborn>();
  future<void> running, queued;
  {
    runtime rt(options{.threads = 1});
    running = rt.spawn(task_options{.name = "stubborn"}, [shared] {
      shared->started.open();
      (void)shared->go.pass();
      shared->ended.open();
    });
    ASSERT_TRUE(shared->started.pass());
    queued = rt.spawn(task_options{.name = "never ran"}, [] {});
    const auto report = rt.shutdown(milliseconds(20));
    EXPECT_FALSE(report.complete);
    EXPECT_EQ(report.queued_abandoned, 1u);
    EXPECT_EQ(report.still_running, std::vector<std::string>{"stubborn"});
    EXPECT_EQ(code_of([&] { queued.get(); }), errc::runtime_stopped);
  }
  shared->go.open();
  EXPECT_TRUE(shared->ended.pass());
}

TEST(shutdown, by_the_destructor_is_bounded_even_if_a_body_does_not_stop) {
  auto shared = std::make_shared<stubborn>();
  const auto start = clock::now();
  {
    runtime rt(options{.threads = 2, .shutdown_timeout = milliseconds(50)});
    rt.spawn([shared] {
      shared->started.open();
      (void)shared->go.pass();
      shared->ended.open();
    });
    ASSERT_TRUE(shared->started.pass());
  }
  EXPECT_LT(clock::now() - start, test::patience / 2);
  EXPECT_FALSE(shared->ended.is_open());
  shared->go.open();
  EXPECT_TRUE(shared->ended.pass());
}

TEST(shutdown, asks_running_bodies_to_stop) {
  auto shared = std::make_shared<stubborn>();
  shutdown_report report;
  {
    runtime rt(options{.threads = 1});
    rt.spawn([shared](task_context& c) {
      shared->started.open();
      const auto limit = clock::now() + test::patience;
      while (!c.stop_requested() && clock::now() < limit) std::this_thread::yield();
      shared->asked = c.stop_requested();
      shared->ended.open();
    });
    ASSERT_TRUE(shared->started.pass());
    report = rt.shutdown(milliseconds(1));
  }
  EXPECT_TRUE(shared->ended.pass());
  EXPECT_TRUE(shared->asked);
}

// ---- leaving the host alone -----------------------------------------------------------------------------------------

TEST(runtime, leaves_signal_handlers_as_they_were) {
  const auto handlers = [] {
    std::vector<void (*)(int)> v;
    for (int s = 1; s < 32; ++s) {
      struct sigaction action;
      std::memset(&action, 0, sizeof action);
      sigaction(s, nullptr, &action);
      v.push_back(action.sa_handler);
    }
    return v;
  };
  const auto before = handlers();
  {
    runtime rt(options{.threads = 2});
    rt.spawn([] {}).get();
    EXPECT_EQ(handlers(), before);
  }
  EXPECT_EQ(handlers(), before);
}

TEST(runtime, writes_nothing_to_the_terminal) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    runtime rt(options{.threads = 1});
    rt.spawn([] { throw std::runtime_error("quiet, please"); }).wait();
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(runtime, may_be_shut_down_by_another_thread_than_the_one_that_made_it) {
  const auto rt = std::make_shared<runtime>(options{.threads = 1});
  EXPECT_EQ(rt->spawn([] { return 4; }).get(), 4);
  const auto complete = std::make_shared<std::promise<bool>>();
  auto done = complete->get_future();
  std::thread([rt, complete] { complete->set_value(rt->shutdown(std::chrono::seconds(5)).complete); }).detach();
  ASSERT_EQ(done.wait_for(test::patience), std::future_status::ready);
  EXPECT_TRUE(done.get());
}

// A wait that has seen nothing in flight is over, whatever another thread submits at that moment.
TEST(runtime, threads_that_submit_and_wait_for_all_do_not_take_each_other_for_a_shutdown) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      try {
        for (int i = 0; i < 20'000; ++i) {
          const auto mine = rt.spawn([] {});
          rt.wait_all();
          if (!mine.is_ready()) ++wrong;
        }
      } catch (const troupe::error&) {
        ++wrong;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
