// What this file is for: the bounds of edges: what waits, what is dropped, what fails.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <ranges>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"
#include "tests/support/sanitizers.hpp"

namespace {

namespace st = troupe::stream;
using test::expect_balanced;

// Waits until a report says so.
template <class F>
st::report wait_until(const st::running& r, F holds) {
  const auto end = std::chrono::steady_clock::now() + test::patience;
  for (;;) {
    st::report told = r.report();
    if (holds(told) || std::chrono::steady_clock::now() > end) return told;
    std::this_thread::yield();
  }
}

// A sink that takes an item when it is let.
struct slow_sink {
  test::gate go;
  std::vector<int> got;
  std::atomic<int> begun{0};
};

TEST(stream_bounds, a_sink_that_stands_still_stops_the_source_with_the_edge_full) {
  troupe::runtime rt(troupe::options{.threads = 2});
  slow_sink s;
  const test::opener last(s.go);
  std::atomic<int> asked{0};
  auto p = st::from("numbers",
                    [&]() -> std::optional<int> {
                      const int i = asked++;
                      return i < 1000 ? std::optional(i) : std::nullopt;
                    }) |
           st::async({.items = 8}) | st::sink("slow", [&](int i) {
             ++s.begun;
             EXPECT_TRUE(s.go.pass());
             s.got.push_back(i);
           });
  auto r = p.start(rt);
  const st::report full = wait_until(r, [](const st::report& x) { return x.edges[0].items == 8; });
  EXPECT_EQ(full.edges[0].items, 8u);
  EXPECT_EQ(full.edges[0].items_max, 8u);
  EXPECT_EQ(asked, 8);  // the item that the sink works on is one of the 8
  s.go.open();
  r.wait();
  EXPECT_EQ(s.got.size(), 1000u);
  const st::report told = r.report();
  expect_balanced(told);
  EXPECT_GT(told.edges[0].blocked.count(), 0);
}

TEST(stream_bounds, bytes_are_bounded_and_an_item_above_the_bound_passes_alone) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const std::size_t plain = sizeof(std::vector<char>);
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 200; ++i) sizes.push_back(i % 10 == 0 ? 5000 : 100 + static_cast<std::size_t>(i));
  std::vector<std::size_t> got;
  auto p = st::from("sizes", sizes) | st::map("make", [](std::size_t n) { return std::vector<char>(n); }) |
           st::async({.items = 64, .bytes = 1000}) |
           st::sink("look", [&](const std::vector<char>& v) { got.push_back(v.size()); });
  auto r = p.start(rt);
  r.wait();
  EXPECT_EQ(got, sizes);
  const st::report told = r.report();
  EXPECT_EQ(told.edges[0].bytes_max, 5000 + plain);  // alone: nothing beside it
  expect_balanced(told);
}

TEST(stream_bounds, bytes_of_what_a_parallel_stage_makes_are_bounded_and_the_order_is_kept) {
  troupe::runtime rt(troupe::options{.threads = 4});
  std::vector<std::size_t> got, sizes;
  for (std::size_t i = 0; i < 2000; ++i) sizes.push_back((i * 37) % 900);
  auto p = st::from("sizes", sizes) |
           st::map("make", [](std::size_t n) { return std::string(n, 'x'); }, {.parallel = 4, .edge = {.items = 4}}) |
           st::async({.items = 16, .bytes = 2000}) |
           st::sink("look", [&](const std::string& v) { got.push_back(v.size()); });
  auto r = p.start(rt);
  r.wait();
  EXPECT_EQ(got, sizes);
  // The item for which others wait in order is let in: one more than the bound at most.
  for (const auto& e : r.report().edges) EXPECT_LE(e.bytes_max, e.bytes_bound + 900 + sizeof(std::string)) << e.to;
  expect_balanced(r.report());
}

void expect_dropped(st::when_full how, const std::vector<int>& wanted) {
  troupe::runtime rt(troupe::options{.threads = 2});
  slow_sink s;
  const test::opener last(s.go);
  test::gate first;
  auto p = st::from<int>("in", {.items = 4, .full = how}) | st::sink("slow", [&](int i) {
             first.open();
             EXPECT_TRUE(s.go.pass());
             s.got.push_back(i);
           });
  auto r = p.start(rt);
  auto in = r.input<int>("in");
  EXPECT_EQ(in.push(0), st::pushed::ok);
  ASSERT_TRUE(first.pass());  // the sink has it, and it counts
  for (int i = 1; i < 10; ++i) EXPECT_EQ(in.push(i), st::pushed::ok);
  in.close();
  s.go.open();
  r.wait();
  EXPECT_EQ(s.got, wanted);
  const st::report told = r.report();
  EXPECT_EQ(told.items.pushed, 10u);
  EXPECT_EQ(told.items.dropped, 6u);
  EXPECT_EQ(told.edges[0].dropped, 6u);
  expect_balanced(told);
}
TEST(stream_bounds, a_full_edge_drops_the_newest_if_told_to) {
  expect_dropped(st::when_full::drop_newest, {0, 1, 2, 3});
}
TEST(stream_bounds, a_full_edge_drops_the_oldest_if_told_to) {
  expect_dropped(st::when_full::drop_oldest, {0, 7, 8, 9});
}

TEST(stream_bounds, a_full_edge_fails_the_stream_if_told_to) {
  troupe::runtime rt(troupe::options{.threads = 2});
  test::gate go;
  const test::opener last(go);
  auto p = st::from("numbers", std::views::iota(0, 100)) | st::async({.items = 4, .full = st::when_full::fail}) |
           st::sink("slow", [&](int) { EXPECT_TRUE(go.pass()); });
  auto r = p.start(rt);
  const st::report told = wait_until(r, [](const st::report& x) { return x.state == st::state::failed; });
  EXPECT_EQ(told.state, st::state::failed);
  go.open();
  try {
    r.wait();
    FAIL();
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), troupe::errc::overrun);
    EXPECT_NE(std::string(e.what()).find("slow"), std::string::npos);
  }
  const st::report last_told = r.report();
  EXPECT_EQ(last_told.items.dropped, 1u) << "the one for which there was no room";
  expect_balanced(last_told);
}

TEST(stream_bounds, what_is_in_flight_never_exceeds_the_bounds_of_all_edges) {
  troupe::runtime rt(troupe::options{.threads = 4});
  auto frames = std::make_shared<std::atomic<int>>(0);
  std::atomic<int> most{0};
  struct frame {
    std::shared_ptr<std::atomic<int>> count;
    explicit frame(std::shared_ptr<std::atomic<int>> c) : count(std::move(c)) { ++*count; }
    frame(frame&& o) noexcept = default;
    frame& operator=(frame&&) noexcept = default;
    ~frame() {
      if (count) --*count;
    }
  };
  auto p = st::from("numbers", std::views::iota(0, 3000)) |
           st::map("make",
                   [&](int) {
                     frame f(frames);
                     int seen = most.load();
                     while (seen < *frames && !most.compare_exchange_weak(seen, *frames)) {
                     }
                     return f;
                   }) |
           st::async({.items = 3}) | st::map("a", [](frame f) { return f; }) | st::async({.items = 2}) |
           st::map("b", [](frame f) { return f; }, {.parallel = 2, .edge = {.items = 2}}) | st::async({.items = 1}) |
           st::sink("end", [](frame) {});
  p.start(rt).wait();
  // Edges of 3, 2 and 1; one in the hands of whoever makes it; one of each lane that has left its edge and waits for
  // its place in the next.
  EXPECT_LE(most, 3 + 2 + 1 + 1 + 3);
  EXPECT_EQ(*frames, 0);
}

TEST(stream_bounds, counts_are_of_one_moment_while_a_stream_runs) {
  troupe::runtime rt(troupe::options{.threads = 4});
  auto [a, b] = st::from("numbers", std::views::iota(0)) | st::async({.items = 10}) | st::tee<2>("tee");
  auto left = a | st::map("par", [](int i) { return i; }, {.parallel = 3}) |
              st::flat_map("two",
                           [](int i) {
                             return std::vector<int>{i, i};
                           }) |
              st::batch("batch", {.items = 7}) | st::sink("left", [](const std::vector<int>&) {});
  auto right = b | st::async({.items = 5, .full = st::when_full::drop_oldest}) | st::sink("right", [](int) {});
  auto p = left + right;
  auto r = p.start(rt);
  const auto end = std::chrono::steady_clock::now() + test::patience;
  int exact = 0;
  std::uint64_t delivered = 0;
  while ((exact < 100 || delivered < 1000) && std::chrono::steady_clock::now() < end) {
    const st::report told = r.report();
    if (!told.is_exact) continue;
    ++exact;
    delivered = told.items.delivered;
    ASSERT_NO_FATAL_FAILURE(expect_balanced(told));
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GE(exact, 100);
  EXPECT_GE(delivered, 1000u);
  const st::report last = r.drain(test::patience);
  expect_balanced(last);
  EXPECT_EQ(last.items.in_flight, 0u);
}

TEST(stream_bounds, an_edge_that_nobody_takes_from_is_reported) {
  troupe::runtime rt(troupe::options{.threads = 2});
  test::gate go, begun;
  const test::opener last(go);
  auto p = st::from("numbers", std::views::iota(0, 10)) | st::async() | st::sink("stuck", [&](int) {
             begun.open();
             EXPECT_TRUE(go.pass());
           });
  auto r = p.start(rt, {.stalled_after = std::chrono::milliseconds(1)});
  ASSERT_TRUE(begun.pass());
  const st::report told = wait_until(r, [](const st::report& x) { return !x.stalls.empty(); });
  ASSERT_FALSE(told.stalls.empty());
  EXPECT_NE(told.stalls[0].find("'stuck'"), std::string::npos) << told.stalls[0];
  EXPECT_NE(told.stalls[0].find("is running"), std::string::npos) << told.stalls[0];
  EXPECT_FALSE(told.is_exact);
  go.open();
  r.wait();
  EXPECT_TRUE(r.report().stalls.empty());
}

TEST(stream_bounds, an_edge_that_keeps_the_latest_drops_older_items_of_the_same_key) {
  troupe::runtime rt(troupe::options{.threads = 2});
  slow_sink sink;
  struct quote {
    int symbol, price;
  };
  std::vector<std::pair<int, int>> got;
  auto p = st::from<quote>("quotes", {.items = 1}) | st::latest_by(&quote::symbol, {.items = 8}) |
           st::sink("slow", [&](const quote& q) {
             troupe::yield_core([&] { static_cast<void>(sink.go.pass()); });
             got.emplace_back(q.symbol, q.price);
           });
  auto r = p.start(rt);
  for (int price = 0; price < 100; ++price)
    for (int symbol = 0; symbol < 5; ++symbol)
      ASSERT_EQ(r.input<quote>("quotes").push({symbol, price}), st::pushed::ok);
  sink.go.open();
  r.drain(test::patience);
  const st::report told = r.report();
  expect_balanced(told);
  EXPECT_EQ(told.items.delivered + told.items.dropped, 500u);
  EXPECT_LE(got.size(), 12u);
  EXPECT_GE(told.items.dropped, 488u);
  // The last one of each symbol has come, and prices of a symbol only rise.
  std::map<int, int> last;
  for (const auto& [symbol, price] : got) {
    const auto [of, is_first] = last.try_emplace(symbol, price);
    if (is_first) continue;
    EXPECT_GT(price, of->second);
    of->second = price;
  }
  for (int symbol = 0; symbol < 5; ++symbol) EXPECT_EQ(last[symbol], 99) << symbol;
}

// The resident memory of this process, in bytes.
std::size_t resident() {
  std::ifstream facts("/proc/self/statm");
  std::size_t all = 0, pages = 0;
  facts >> all >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(slow_stream_bounds, memory_does_not_grow_with_the_number_of_items) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers keep memory of their own";
  troupe::runtime rt(troupe::options{.threads = 2});
  constexpr std::uint64_t count = 10'000'000;
  std::size_t early = 0, most = 0;
  std::uint64_t seen = 0;
  auto p = st::from("numbers", std::views::iota(std::uint64_t{0}, count)) | st::async() |
           st::map("text", [](std::uint64_t i) { return std::string(40, static_cast<char>('a' + i % 26)); },
                   {.parallel = 2}) |
           st::sink("sum", [&](const std::string&) {
             if (++seen == count / 100) early = resident();
             if (seen % (count / 100) == 0) most = std::max(most, resident());
           });
  auto r = p.start(rt);
  r.wait();
  EXPECT_EQ(seen, count);
  EXPECT_LT(most, early + (4u << 20));
}

TEST(slow_stream_bounds, a_slow_sink_holds_no_more_frames_than_the_bound) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers keep memory of their own";
  troupe::runtime rt(troupe::options{.threads = 2});
  using frame = st::recycled<std::vector<char>>;
  const std::size_t before = resident();
  std::size_t most = 0;
  std::uint64_t in_flight = 0;
  const st::recycler<std::vector<char>> memory(64);
  auto p = st::from("frames",
                    [&, i = 0]() mutable -> std::optional<frame> {
                      if (i++ == 400) return {};
                      frame f = memory.take();
                      f->assign(1u << 20, 'x');
                      return f;
                    }) |
           st::async({.items = 16}) | st::sink("slow", [&](const frame&) {
             // A sink that takes 2 ms, as a disk might.
             troupe::yield_core([] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
             most = std::max(most, resident());
           });
  auto r = p.start(rt);
  r.wait();
  for (const auto& e : r.report().edges) in_flight = std::max(in_flight, e.items_max);
  EXPECT_LE(in_flight, 16u);
  EXPECT_LT(most, before + (16u << 20) + (32u << 20));
}

TEST(stream_bounds, an_edge_that_keeps_the_latest_is_refused_where_it_cannot) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const auto refused = [&](st::pipeline p, const char* stage) {
    try {
      static_cast<void>(p.check(rt));
      ADD_FAILURE() << stage;
    } catch (const troupe::error& e) {
      EXPECT_EQ(e.code(), troupe::errc::bad_argument);
      EXPECT_NE(std::string(e.what()).find(stage), std::string::npos) << e.what();
    }
  };
  const auto numbers = [](const char* name) { return st::from(name, std::vector<int>{1, 2}); };
  const auto same = [](int i) { return i; };
  refused(numbers("a") | st::map("parallel", same, {.parallel = 2}) | st::latest_by(same) | st::sink("end", [](int) {}),
          "'end'");
  refused(st::merge("both", numbers("a") | st::latest_by(same), numbers("b")) | st::sink("end", [](int) {}), "'both'");
}

TEST(stream_bounds, a_key_of_the_latest_that_throws_fails_the_stream_with_its_stage) {
  troupe::runtime rt(troupe::options{.threads = 2});
  auto p = st::from("numbers", std::views::iota(0)) |
           st::latest_by(
               [](int i) {
                 if (i >= 500) throw std::runtime_error("no key");
                 return i % 3;
               },
               {.items = 2}) |
           st::sink("end", [](int) { std::this_thread::yield(); });
  auto r = p.start(rt);
  try {
    static_cast<void>(r.wait_for(test::patience));
    FAIL() << "it has not failed";
  } catch (const st::stage_failed& e) {
    EXPECT_EQ(e.stage(), "end");
    EXPECT_NE(std::string(e.what()).find("no key"), std::string::npos);
  }
  test::expect_balanced(r.report());
}

TEST(stream_bounds, options_that_make_no_sense_are_refused) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const auto numbers = [] { return st::from("n", std::views::iota(0, 3)); };
  const auto pass = [](int) { return true; };
  EXPECT_THROW(static_cast<void>(numbers() | st::filter("f", pass, {.parallel = {0, 1}})), troupe::error);
  EXPECT_THROW(static_cast<void>(numbers() | st::sink("s", [](int) {}, {.parallel = {-3, 1}})), troupe::error);
  auto p = numbers() | st::sink("s", [](int) {});
  EXPECT_THROW(static_cast<void>(p.start(rt, {.stalled_after = std::chrono::milliseconds(-5)})), troupe::error);
}

}  // namespace
