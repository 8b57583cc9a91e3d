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

}  // namespace
