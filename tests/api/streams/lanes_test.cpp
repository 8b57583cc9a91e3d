// What this file is for: stages that use as many lanes as there is work for; edges that memory has no room for.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"

namespace {

using namespace std::chrono_literals;
namespace st = troupe::stream;
using test::expect_balanced;

int lanes_of(const st::running& r, const std::string& stage) {
  for (const auto& s : r.report().stages)
    if (s.name == stage) return s.lanes;
  return 0;
}

TEST(stream_lanes, are_as_many_as_there_is_work_for) {
  troupe::runtime rt(troupe::options{.threads = 4});
  test::gate holds;
  const test::opener at_the_end(holds);
  std::atomic<int> inside{0}, most{0};
  auto p = st::from<int>("in", {.items = 4}) |
           st::map("work",
                   [&](int i) {
                     const int now = ++inside;
                     for (int m = most; now > m && !most.compare_exchange_weak(m, now);) {
                     }
                     if (i < 10) {
                       EXPECT_TRUE(holds.pass());
                     }
                     --inside;
                     return i;
                   },
                   {.parallel = {1, 3}, .edge = {.items = 4}}) |
           st::sink("end", [](int) {});
  auto r = p.start(rt);
  auto in = r.input<int>("in");
  EXPECT_EQ(lanes_of(r, "work"), 1);
  for (int i = 0; i < 10; ++i)
    if (in.push_for(i < 3 ? 30s : 10ms, int(i)) != st::pushed::ok) break;
  // The first three are held: the edge was full, so all lanes are used.
  EXPECT_TRUE(test::comes_true([&] { return inside == 3; })) << r.report().text();
  EXPECT_EQ(lanes_of(r, "work"), 3);
  holds.open();
  // Items that come one at a time need one lane.
  int pushed = 0;
  EXPECT_TRUE(test::comes_true([&] {
    EXPECT_EQ(in.push(100 + pushed++), st::pushed::ok);
    return lanes_of(r, "work") == 1;
  })) << r.report().text();
  in.close();
  ASSERT_TRUE(r.wait_for(test::patience));
  EXPECT_EQ(most, 3);
  expect_balanced(r.report());
}

TEST(stream_lanes, that_scale_keep_the_order) {
  troupe::runtime rt(troupe::options{.threads = 3});
  std::vector<int> got;
  auto p = st::from("numbers", std::views::iota(0, 20'000)) |
           st::map("work",
                   [](int i) {
                     if (i % 100 == 0)
                       for (int n = 0; n < 50; ++n) std::this_thread::yield();
                     return i;
                   },
                   {.parallel = {1, 8}, .edge = {.items = 8}}) |
           st::sink("end", [&](int i) { got.push_back(i); });
  auto r = p.start(rt);
  ASSERT_TRUE(r.wait_for(test::patience)) << r.report().text();
  ASSERT_EQ(got.size(), 20'000u);
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
}

TEST(stream_lanes, numbers_of_lanes_that_make_no_sense_are_refused) {
  for (const st::lanes l : {st::lanes(0), st::lanes(-1), st::lanes(1025), st::lanes(0, 2), st::lanes(3, 2)})
    EXPECT_THROW(static_cast<void>(st::from("n", std::views::iota(0, 2)) |
                                   st::map("work", [](int i) { return i; }, {.parallel = l})),
                 troupe::error);
  EXPECT_THROW(static_cast<void>(st::from("n", std::views::iota(0, 2)) |
                                 st::filter("even", [](int i) { return i % 2 == 0; }, {.parallel = {1, 2}})),
               troupe::error);
}

TEST(stream_bounds, edges_that_may_hold_more_than_the_memory_of_the_runtime_are_refused) {
  troupe::runtime rt(troupe::options{.threads = 1, .memory_bytes = 1u << 20});
  const auto texts = [](std::size_t bytes) {
    return st::from<std::string>("in", {.bytes = 1000}) | st::async({.bytes = bytes}) |
           st::sink("out", [](const std::string&) {});
  };
  auto too_much = texts(64u << 20);
  try {
    static_cast<void>(too_much.start(rt));
    FAIL() << "it was started";
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), troupe::errc::bad_argument);
    EXPECT_NE(std::string(e.what()).find("'out'"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("memory_bytes"), std::string::npos) << e.what();
  }
  const st::layout l = texts(1u << 19).check(rt);
  ASSERT_EQ(l.edges.size(), 2u);
  EXPECT_EQ(l.edges[1].bytes_most, 1u << 19);
  // Items of one size are no more than so many.
  auto numbers = st::from("n", std::views::iota(0, 10)) | st::async() | st::sink("out", [](int) {});
  EXPECT_EQ(numbers.check(rt).edges[0].bytes_most, 64 * sizeof(int));
  auto r = numbers.start(rt);
  EXPECT_TRUE(r.wait_for(test::patience));
}

TEST(stream_lanes, lose_nothing_where_marks_come_and_there_is_no_room) {
  troupe::runtime rt(troupe::options{.threads = 4});
  constexpr int count = 20'000;
  std::atomic<int> got{0};
  auto p = st::from("numbers", std::views::iota(0, count)) |
           st::event_time("time", [](int i) { return std::int64_t{i}; }) |
           st::map("work",
                   [](int i) {
                     if (i % 3 == 0) std::this_thread::yield();
                     return i;
                   },
                   {.parallel = 4, .order = st::unordered}) |
           st::sink("end", [&](int) { ++got; }, {.edge = {.items = 1}});
  auto r = p.start(rt);
  ASSERT_TRUE(r.wait_for(test::patience)) << r.report().text();
  EXPECT_EQ(got, count);
  EXPECT_EQ(r.report().items.in_flight, 0u);
  expect_balanced(r.report());
}

// The end stands behind places that nothing came of.
TEST(stream_lanes, that_are_not_used_are_told_of_the_end) {
  for (int round = 0; round < 20; ++round) {
    troupe::runtime rt(troupe::options{.threads = 3});
    auto p = st::from("numbers", std::views::iota(0, 3)) |
             st::map("a",
                     [](int i) {
                       if (i == 2) throw std::runtime_error("no");
                       return i;
                     },
                     {.parallel = 2, .fail = st::drop}) |
             st::map("b",
                     [](int i) {
                       for (int n = 0; i == 0 && n < 3000; ++n) std::this_thread::yield();
                       return i;
                     },
                     {.parallel = {1, 4}}) |
             st::sink("end", [](int) {});
    auto r = p.start(rt);
    ASSERT_TRUE(r.wait_for(test::patience)) << r.report().text();
  }
}

// A mark stands behind places that nothing came of.
TEST(stream_lanes, pass_marks_on_where_nothing_comes_of_the_last_item) {
  troupe::runtime rt(troupe::options{.threads = 3});
  std::atomic<int> over{0};
  auto p = st::from<int>("in") | st::event_time("time", [](int i) { return std::int64_t{i}; }) |
           st::map("odd",
                   [](int i) {
                     if (i % 2 == 0) throw std::runtime_error("even");
                     return i;
                   },
                   {.parallel = 3, .fail = st::drop}) |
           st::window("tens", st::tumbling(std::chrono::nanoseconds(10)), {}, st::count()) |
           st::sink("end", [&](const auto&) { ++over; });
  auto r = p.start(rt);
  auto in = r.input<int>("in");
  for (int i = 1; i <= 30; ++i) {
    ASSERT_EQ(in.push(10 * i + 1), st::pushed::ok);
    ASSERT_EQ(in.push(10 * i + 10), st::pushed::ok);  // ends the window, and is dropped itself
    EXPECT_TRUE(test::comes_true([&] { return over == i; })) << i << r.report().text();
  }
}

}  // namespace
