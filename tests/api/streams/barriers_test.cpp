// What this file is for: barriers: what was pushed before one has been worked on when it has come to the sinks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <ranges>
#include <thread>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"

namespace {

using namespace std::chrono_literals;
namespace st = troupe::stream;
using test::expect_balanced;

TEST(stream_barriers, what_was_pushed_before_has_been_delivered_batches_included) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<int> got{0};
  auto p = st::from<int>("in") | st::map("work", [](int i) { return i; }, {.parallel = 3}) |
           st::batch("hour", {.items = 1'000'000, .delay = 1h}) | st::unbatch("items") | st::async() |
           st::sink("end", [&](int) { ++got; });
  auto r = p.start(rt);
  auto in = r.input<int>("in");
  for (int round = 1; round <= 50; ++round) {
    for (int i = 0; i < 37; ++i) ASSERT_EQ(in.push(i), st::pushed::ok);
    ASSERT_TRUE(r.barrier(test::patience)) << r.report().text();
    EXPECT_EQ(got, 37 * round);
  }
  in.close();
  ASSERT_TRUE(r.wait_for(test::patience));
  EXPECT_TRUE(r.barrier(0s)) << "the stream has ended: nothing is left";
  expect_balanced(r.report());
}

TEST(stream_barriers, wait_for_all_ways_and_do_not_wait_for_ever) {
  troupe::runtime rt(troupe::options{.threads = 3});
  test::gate holds;
  const test::opener at_the_end(holds);
  std::atomic<int> got{0};
  auto a = st::from<int>("a"), b = st::from<int>("b") |
                                   st::map("held",
                                           [&](int i) {
                                             EXPECT_TRUE(holds.pass());
                                             return i;
                                           }) |
                                   st::async();
  auto p = st::merge("both", a, b) | st::sink("end", [&](int) { ++got; });
  auto r = p.start(rt);
  ASSERT_EQ(r.input<int>("b").push(1), st::pushed::ok);
  EXPECT_FALSE(r.barrier(20ms));
  ASSERT_EQ(r.input<int>("a").push(2), st::pushed::ok);  // it may not pass the barrier, but waits
  EXPECT_EQ(got, 0);
  holds.open();
  EXPECT_TRUE(r.barrier(test::patience));
  EXPECT_EQ(got, 2);
  r.input<int>("a").close();
  EXPECT_TRUE(r.barrier(test::patience)) << "a way that has ended is not waited for";
  r.cancel();
  EXPECT_FALSE(r.barrier(test::patience)) << "it was ended before";
}

TEST(stream_barriers, go_through_sources_that_never_end_and_may_come_from_many_threads) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<std::uint64_t> got{0};
  auto p = st::from("numbers", std::views::iota(std::uint64_t{0})) | st::async({.items = 4}) |
           st::map("work", [](std::uint64_t i) { return i; }, {.parallel = {1, 3}, .order = st::unordered}) |
           st::sink("end", [&](std::uint64_t) { ++got; });
  auto r = p.start(rt);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const std::uint64_t pushed = r.report().items.pushed;
        EXPECT_TRUE(r.barrier(test::patience));
        EXPECT_GE(got, pushed);
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(r.report().state, st::state::runs);
}

TEST(stream_barriers, go_through_windows_joins_and_tables_that_keep_what_they_have) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<int> windows{0}, pairs{0};
  auto [a, b] = st::from<int>("in") |
                st::event_time("time", [](int i) { return std::int64_t{i}; }, {.out_of_order = 1s}) |
                st::tee<2>("copies");
  auto [c, d] = b | st::tee<2>("more");
  const auto key = st::key_by([](int i) { return i; });
  auto p = (a | key | st::window("count", st::tumbling(1h), {}, st::count()) |
            st::sink("w", [&](const auto&) { ++windows; })) +
           (st::join("join", c | key, d | key, st::within(0ns), [](int x, int) { return x; }) |
            st::sink("p", [&](int) { ++pairs; }));
  auto r = p.start(rt);
  auto in = r.input<int>("in");
  for (int i = 0; i < 100; ++i) ASSERT_EQ(in.push(int(i)), st::pushed::ok);
  ASSERT_TRUE(r.barrier(test::patience)) << r.report().text();
  EXPECT_EQ(pairs, 100);
  EXPECT_EQ(windows, 0);
  in.close();
  ASSERT_TRUE(r.wait_for(test::patience));
  EXPECT_EQ(windows, 100);
}

TEST(stream_barriers, a_stage_that_waits_for_one_of_its_own_stream_is_told) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<st::running*> self{nullptr};
  std::atomic<int> code{0};
  auto p = st::from<int>("in") | st::sink("end", [&](int) {
             try {
               static_cast<void>(self.load()->barrier(1s));
             } catch (const troupe::error& e) {
               code = static_cast<int>(e.code());
             }
           });
  auto r = p.start(rt);
  self = &r;
  ASSERT_EQ(r.input<int>("in").push(1), st::pushed::ok);
  EXPECT_TRUE(test::comes_true([&] { return code != 0; }));
  EXPECT_EQ(code, static_cast<int>(troupe::errc::would_deadlock));
}

TEST(stream_barriers, go_through_tables_and_past_items_that_wait_for_one) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<int> answered{0};
  const auto key = st::key_by([](int i) { return i % 3; });
  auto p = st::lookup("rows", st::from<int>("items") | key, st::from<int>("rows in") | key,
                      [](int, const int*) { return 1; }) |
           st::sink("end", [&](int) { ++answered; });
  auto r = p.start(rt);
  auto items = r.input<int>("items");
  for (int round = 1; round <= 20; ++round) {
    for (int i = 0; i < 10; ++i) ASSERT_EQ(items.push(int(i)), st::pushed::ok);
    ASSERT_TRUE(r.barrier(test::patience)) << r.report().text();
    EXPECT_EQ(answered, 10 * round);
  }
}

TEST(stream_barriers, stop_no_stream_with_a_zip) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<int> pairs{0}, single{0};
  auto a = st::from("a", std::views::iota(0)) | st::tee<2>("a copies");
  auto b = st::from("b", std::views::iota(0)) | st::tee<2>("b copies");
  auto p = (st::merge("both", a[0], b[0]) | st::sink("single", [&](int) { ++single; })) +
           (st::zip("pairs", a[1], b[1]) | st::sink("paired", [&](const auto&) { ++pairs; }));
  auto r = p.start(rt);
  for (int i = 0; i < 20; ++i) static_cast<void>(r.barrier(5ms));
  const int before = pairs;
  EXPECT_TRUE(test::comes_true([&] { return pairs > before + 1000; })) << r.report().text();
}

TEST(stream_barriers, let_no_item_of_tasks_pass) {
  troupe::runtime rt(troupe::options{.threads = 3});
  test::gate holds;
  const test::opener at_the_end(holds);
  std::atomic<int> first{-1};
  auto p = st::from<int>("in") |
           st::tasks("work",
                     [&](st::spawner& on, int i) {
                       on.spawn([&holds, i] {
                         if (i == 0) {
                           EXPECT_TRUE(holds.pass());
                         }
                       });
                       return i;
                     },
                     {.in_flight = 4, .order = st::unordered}) |
           st::sink("end", [&](int i) {
             int none = -1;
             first.compare_exchange_strong(none, i);
           });
  auto r = p.start(rt);
  auto in = r.input<int>("in");
  ASSERT_EQ(in.push(0), st::pushed::ok);
  EXPECT_FALSE(r.barrier(10ms));
  ASSERT_EQ(in.push(1), st::pushed::ok);
  EXPECT_FALSE(r.barrier(20ms));
  EXPECT_EQ(first, -1) << "an item has passed the barrier";
  holds.open();
  EXPECT_TRUE(r.barrier(test::patience));
  EXPECT_EQ(first, 0);
}

// The sink takes the next item in the call in which the barrier comes; who waits is told meanwhile.
TEST(stream_barriers, are_told_of_when_they_come_and_not_when_a_sink_returns) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<int> told{0}, seen_inside{0}, pushed{-1};
  auto p = st::from<int>("in") | st::sink("end", [&](int i) {
             if (i % 2 == 0) {
               EXPECT_TRUE(test::comes_true([&] { return pushed > i; }));
               return;
             }
             // Where the barrier was begun after this item nothing comes while it is here.
             const auto until = std::chrono::steady_clock::now() + 50ms;
             while (told <= i / 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
             if (told > i / 2) ++seen_inside;
           });
  auto r = p.start(rt);
  auto in = r.input<int>("in");
  // Whether the barrier is before the second item is up to the threads, so it is tried until it was.
  for (int round = 0; round < 300 && seen_inside == 0; ++round) {
    ASSERT_EQ(in.push(2 * round), st::pushed::ok);
    std::thread waits([&] {
      EXPECT_TRUE(r.barrier(test::patience));
      ++told;
    });
    for (int n = 0; n < 10 * round; ++n) std::this_thread::yield();
    ASSERT_EQ(in.push(2 * round + 1), st::pushed::ok);
    pushed = 2 * round + 1;
    waits.join();
  }
  in.close();
  ASSERT_TRUE(r.wait_for(test::patience));
  EXPECT_GT(seen_inside, 0);
}

TEST(stream_barriers, a_batch_is_passed_on_by_a_barrier_and_not_by_what_comes_after_it) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<int> batches{0};
  auto p = st::from<int>("in") | st::event_time("time", [](int i) { return std::int64_t{i}; }) |
           st::batch("hour", {.items = 1000, .delay = 1h}) |
           st::sink("end", [&](const std::vector<int>&) { ++batches; });
  auto r = p.start(rt);
  auto in = r.input<int>("in");
  ASSERT_TRUE(r.barrier(test::patience));
  for (int i = 0; i < 500; ++i) ASSERT_EQ(in.push(int(i)), st::pushed::ok);
  ASSERT_TRUE(test::comes_true([&] { return r.report().stages[2].held == 500; })) << r.report().text();
  EXPECT_EQ(batches, 0) << "a watermark has passed it on";
  ASSERT_TRUE(r.barrier(test::patience));
  EXPECT_EQ(batches, 1);
}

}  // namespace
