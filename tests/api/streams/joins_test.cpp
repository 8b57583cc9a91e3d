// What this file is for: flows that are joined by key and time, with each other and with tables.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"

namespace {

using namespace std::chrono_literals;
namespace st = troupe::stream;
using test::expect_balanced;

struct event {
  int key;
  std::int64_t at;
  int id;
};
using pair = std::pair<int, int>;  // of ids

auto timed(const char* name, const std::vector<event>& all, std::chrono::nanoseconds out_of_order = 0ns) {
  return st::from(name, all) | st::event_time(std::string(name) + " time", &event::at, {.out_of_order = out_of_order});
}

std::vector<pair> joined(const std::vector<event>& a, const std::vector<event>& b, const st::joining& when,
                         std::chrono::nanoseconds out_of_order = 0ns, int threads = 2, std::uint64_t* late = nullptr) {
  troupe::runtime rt(troupe::options{.threads = threads});
  std::vector<pair> got;
  auto p = st::join("pairs", timed("a", a, out_of_order) | st::key_by(&event::key),
                    timed("b", b, out_of_order) | st::key_by(&event::key), when,
                    [](const event& x, const event& y) { return pair(x.id, y.id); }) |
           st::sink("keep", [&](const pair& x) { got.push_back(x); });
  auto r = p.start(rt);
  EXPECT_TRUE(test::ends(r));
  r.wait();
  const st::report told = r.report();
  expect_balanced(told);
  EXPECT_EQ(told.items.in_flight, 0u) << told.text();
  if (late) *late = told.items.dropped;
  std::sort(got.begin(), got.end());
  return got;
}

TEST(stream_joins, pairs_have_one_key_and_times_within_the_interval) {
  const std::vector<event> a{{1, 10, 0}, {2, 10, 1}, {1, 20, 2}};
  const std::vector<event> b{{1, 7, 0}, {1, 8, 1}, {1, 15, 2}, {1, 16, 3}, {2, 12, 4}, {3, 12, 5}, {1, 25, 6}};
  EXPECT_EQ(joined(a, b, st::within(2ns, 5ns), 1h), (std::vector<pair>{{0, 1}, {0, 2}, {1, 4}, {2, 6}}));
  EXPECT_EQ(joined(a, b, st::within(0ns), 1h), std::vector<pair>{});
  // An interval that begins later: 5 to 6 after.
  EXPECT_EQ(joined(a, b, st::within(-5ns, 6ns), 1h), (std::vector<pair>{{0, 2}, {0, 3}, {2, 6}}));
}

TEST(stream_joins, pairs_of_the_same_window) {
  const std::vector<event> a{{1, 9, 0}, {1, 10, 1}, {1, 19, 2}, {1, -1, 3}};
  const std::vector<event> b{{1, 0, 0}, {1, 10, 1}, {1, 20, 2}, {1, -10, 3}};
  EXPECT_EQ(joined(a, b, st::same_window(10ns), 1h), (std::vector<pair>{{0, 0}, {1, 1}, {2, 1}, {3, 3}}));
}

// All pairs, by trying each.
std::vector<pair> by_force(const std::vector<event>& a, const std::vector<event>& b, const st::joining& when) {
  std::vector<pair> all;
  const auto start = [&](std::int64_t t) {
    const std::int64_t size = when.size.count();
    return t >= 0 ? t / size : -((-t + size - 1) / size);
  };
  for (const event& x : a)
    for (const event& y : b) {
      const bool fits = when.kind == st::joining::shape::window
                            ? start(x.at) == start(y.at)
                            : y.at >= x.at - when.before.count() && y.at <= x.at + when.after.count();
      if (x.key == y.key && fits) all.emplace_back(x.id, y.id);
    }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<event> events(std::mt19937& any, int count, int keys, std::int64_t step, std::int64_t jitter) {
  std::vector<event> all;
  std::int64_t now = std::uniform_int_distribution<std::int64_t>(-1000, 1000)(any);
  for (int i = 0; i < count; ++i) {
    now += std::uniform_int_distribution<std::int64_t>(0, step)(any);
    all.push_back({std::uniform_int_distribution<int>(0, keys - 1)(any),
                   now - std::uniform_int_distribution<std::int64_t>(0, jitter)(any), i});
  }
  return all;
}

TEST(stream_joins, random_flows_give_the_pairs_that_brute_force_finds) {
  for (unsigned seed = 1; seed <= 120; ++seed) {
    std::mt19937 any(seed);
    const auto draw = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(any); };
    const int jitter = draw(0, 1) * draw(1, 50);
    const int keys = draw(1, 20);
    const auto a = events(any, draw(0, 1500), keys, draw(1, 10), jitter);
    const auto b = events(any, draw(0, 1500), keys, draw(1, 10), jitter);
    const st::joining when =
        draw(0, 1) == 0 ? st::same_window(std::chrono::nanoseconds(draw(1, 200)))
                        : st::within(std::chrono::nanoseconds(draw(0, 100)), std::chrono::nanoseconds(draw(0, 100)));
    std::uint64_t late = 0;
    EXPECT_EQ(joined(a, b, when, std::chrono::nanoseconds(jitter), draw(1, 4), &late), by_force(a, b, when))
        << "seed " << seed;
    EXPECT_EQ(late, 0u) << "seed " << seed;
  }
}

TEST(stream_joins, what_nothing_belongs_to_any_more_is_forgotten) {
  troupe::runtime rt(troupe::options{.threads = 2});
  constexpr int count = 200'000;
  std::uint64_t pairs = 0, held_most = 0;
  // Copies of one flow: neither can get far ahead of the other, however the threads are scheduled.
  auto [a, b] = st::from("events",
                         [n = 0]() mutable -> std::optional<event> {
                           if (n == count) return std::nullopt;
                           const event e{n % 7, n, n};
                           ++n;
                           return e;
                         }) |
                st::event_time("time", &event::at) | st::tee<2>("copies");
  auto p = st::join("pairs", a | st::key_by(&event::key), b | st::key_by(&event::key), st::within(100ns),
                    [](const event& x, const event& y) { return pair(x.id, y.id); }) |
           st::sink("count", [&](const pair&) { ++pairs; });
  auto r = p.start(rt);
  while (!r.wait_for(1ms))
    for (const auto& s : r.report().stages)
      if (s.kind == "join") held_most = std::max(held_most, s.held);
  std::uint64_t wanted = 0;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = std::max<std::int64_t>(0, i - 98); j <= std::min<std::int64_t>(count - 1, i + 98); ++j)
      if (i % 7 == j % 7) ++wanted;
  EXPECT_EQ(pairs, wanted);
  EXPECT_GT(held_most, 0u);
  EXPECT_LT(held_most, 5000u);  // 400,000 came
  expect_balanced(r.report());
}

TEST(stream_joins, a_flow_that_is_ahead_is_held_back_and_not_kept) {
  troupe::runtime rt(troupe::options{.threads = 2});
  constexpr int count = 5000;
  std::uint64_t pairs = 0;
  const auto flow = [](const char* name) {
    return st::from<event>(name, {.items = 8}) | st::event_time(std::string(name) + " time", &event::at) |
           st::key_by(&event::key);
  };
  auto p = st::join("pairs", flow("a"), flow("b"), st::within(0ns),
                    [](const event& x, const event& y) { return pair(x.id, y.id); }, {.ahead = 100}) |
           st::sink("count", [&](const pair&) { ++pairs; });
  auto r = p.start(rt);
  auto a = r.input<event>("a"), b = r.input<event>("b");
  int pushed = 0;
  // Room that is made meanwhile is used; at last there is none, and nobody takes anything.
  const auto is_held = [&] {
    while (pushed != count && a.try_push(event{0, pushed, pushed}) == st::pushed::ok) ++pushed;
    const st::report told = r.report();
    return told.edges.front().items == 8 && told.items.in_flight == static_cast<std::uint64_t>(pushed);
  };
  ASSERT_TRUE(test::comes_true([&] { return is_held() && r.report().edges[2].items == 64; })) << r.report().text();
  EXPECT_LT(pushed, 100 + 8 + 64 + 2 * 64) << "a watermark is said each 64 items at least";
  std::thread rest([&] {
    for (; pushed != count; ++pushed) EXPECT_EQ(a.push(event{0, pushed, pushed}), st::pushed::ok);
    a.close();
  });
  for (int i = 0; i < count; ++i) ASSERT_EQ(b.push(event{0, i, i}), st::pushed::ok);
  b.close();
  ASSERT_TRUE(test::ends(r)) << r.report().text();
  rest.join();
  EXPECT_EQ(pairs, count);
  EXPECT_EQ(r.report().items.dropped, 0u);
  expect_balanced(r.report());
}

TEST(stream_joins, an_idle_flow_holds_no_other_one_back) {
  troupe::runtime rt(troupe::options{.threads = 2});
  constexpr int count = 3000;
  std::vector<event> all;
  for (int i = 0; i < count; ++i) all.push_back({0, i, i});
  auto p =
      st::join("pairs", timed("a", all) | st::key_by(&event::key),
               st::from<event>("b") | st::event_time("b time", &event::at, {.idle = 1ms}) | st::key_by(&event::key),
               st::within(0ns), [](const event& x, const event& y) { return pair(x.id, y.id); }, {.ahead = 10}) |
      st::sink("none", [](const pair&) {});
  auto r = p.start(rt);
  EXPECT_TRUE(test::comes_true([&] { return r.report().stages.front().out == count; })) << r.report().text();
  r.input<event>("b").close();
  EXPECT_TRUE(test::ends(r));
}

TEST(stream_joins, flows_that_may_not_be_ahead_at_all_are_refused) {
  const std::vector<event> one{{1, 1, 1}};
  for (const std::size_t ahead : {std::size_t{0}, (std::size_t{1} << 24) + 1}) {
    EXPECT_THROW(st::join("pairs", timed("a", one) | st::key_by(&event::key), timed("b", one) | st::key_by(&event::key),
                          st::within(1ns), [](const event&, const event&) { return 1; }, {.ahead = ahead}),
                 troupe::error);
    EXPECT_THROW(
        st::lookup("rows", timed("a", one) | st::key_by(&event::key), timed("b", one) | st::key_by(&event::key),
                   [](const event&, const event*) { return 1; }, {.ahead = ahead}),
        troupe::error);
  }
}

TEST(stream_joins, late_items_are_dropped_and_counted) {
  std::vector<event> a, b;
  for (int i = 0; i < 1000; ++i) {
    a.push_back({0, i, i});
    b.push_back({0, i, i});
  }
  a.push_back({0, 5, 5000});
  b.push_back({0, 5, 5000});
  std::uint64_t late = 0;
  const auto got = joined(a, b, st::within(0ns), 0ns, 2, &late);
  // Whichever of the two late ones is read when both flows have come so far: all but the first of them may be late.
  EXPECT_GE(late, 1u);
  EXPECT_LE(got.size(), 1001u);
  EXPECT_GE(got.size(), 1000u);
}

TEST(stream_joins, functions_and_times_that_fail_name_the_stage) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const std::vector<event> one{{1, 1, 1}};
  const auto fails = [&](auto flow) {
    auto p = flow | st::sink("end", [](const auto&) {});
    auto r = p.start(rt);
    try {
      r.wait();
      ADD_FAILURE();
    } catch (const st::stage_failed& e) {
      EXPECT_EQ(e.stage(), "pairs");
    }
    expect_balanced(r.report());
  };
  fails(st::join("pairs", timed("a", one) | st::key_by(&event::key), timed("b", one) | st::key_by(&event::key),
                 st::within(1s), [](const event&, const event&) -> int { throw std::runtime_error("no"); }));
  fails(st::join("pairs", timed("a", one) | st::key_by([](const event&) -> int { throw std::runtime_error("no key"); }),
                 timed("b", one) | st::key_by(&event::key), st::within(1s),
                 [](const event&, const event&) { return 1; }));
  fails(st::join("pairs", st::from("a", one) | st::key_by(&event::key), timed("b", one) | st::key_by(&event::key),
                 st::within(1s), [](const event&, const event&) { return 1; }));
  fails(st::lookup("pairs", st::from("a", one) | st::key_by(&event::key), st::from("b", one) | st::key_by(&event::key),
                   [](const event&, const event*) -> int { throw std::runtime_error("no"); }));
}

TEST(stream_joins, intervals_and_windows_that_hold_no_time_are_refused) {
  const std::vector<event> one{{1, 1, 1}};
  const auto refused = [&](const st::joining& when) {
    EXPECT_THROW(st::join("pairs", timed("a", one) | st::key_by(&event::key), timed("b", one) | st::key_by(&event::key),
                          when, [](const event&, const event&) { return 1; }),
                 troupe::error);
  };
  refused(st::within(-1ns));
  refused(st::within(1ns, -2ns));
  refused(st::within(std::chrono::nanoseconds::min(), std::chrono::nanoseconds::max()));
  refused(st::same_window(0ns));
  refused(st::same_window(-1ns));
  EXPECT_EQ(joined(one, one, st::within(std::chrono::nanoseconds::max())).size(), 1u);
}

// ---- tables
using answer = std::pair<int, int>;  // the item's id and the row's; -1: none

std::vector<answer> answers(st::flow<event> a, st::flow<event> table, st::lookup_options o = {}, int threads = 2) {
  troupe::runtime rt(troupe::options{.threads = threads});
  std::vector<answer> got;
  auto p = st::lookup(
               "rows", a | st::key_by(&event::key), table | st::key_by(&event::key),
               [](const event& x, const event* row) { return answer(x.id, row ? row->id : -1); }, o) |
           st::sink("keep", [&](const answer& x) { got.push_back(x); });
  auto r = p.start(rt);
  EXPECT_TRUE(test::ends(r));
  r.wait();
  expect_balanced(r.report());
  EXPECT_EQ(r.report().items.in_flight, 0u);
  return got;
}

TEST(stream_joins, an_item_finds_the_row_that_was_the_last_at_its_time) {
  const std::vector<event> rows{{1, 10, 100}, {2, 10, 200}, {1, 20, 101}, {1, 30, 102}};
  const std::vector<event> items{{1, 9, 0}, {1, 10, 1}, {1, 19, 2}, {2, 25, 3}, {1, 30, 4}, {3, 30, 5}, {1, 99, 6}};
  EXPECT_EQ(answers(timed("a", items), timed("t", rows)),
            (std::vector<answer>{{0, -1}, {1, 100}, {2, 100}, {3, 200}, {4, 102}, {5, -1}, {6, 102}}));
}

TEST(stream_joins, items_with_times_wait_for_a_whole_table_without) {
  const std::vector<event> rows{{1, 0, 100}, {2, 0, 200}, {1, 0, 101}};
  EXPECT_EQ(answers(timed("a", {{1, 5, 0}, {2, 6, 1}, {3, 7, 2}}), st::from("t", rows)),
            (std::vector<answer>{{0, 101}, {1, 200}, {2, -1}}));
}

TEST(stream_joins, random_items_find_the_rows_that_a_model_finds) {
  for (unsigned seed = 1; seed <= 80; ++seed) {
    std::mt19937 any(seed);
    const auto draw = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(any); };
    const int keys = draw(1, 20), jitter = draw(0, 1) * draw(1, 30);
    const auto items = events(any, draw(0, 1500), keys, draw(1, 10), jitter);
    const auto rows = events(any, draw(0, 1500), keys, draw(1, 10), jitter);
    std::vector<answer> wanted;
    for (const event& x : items) {
      const event* best = nullptr;
      for (const event& r : rows)
        if (r.key == x.key && r.at <= x.at && (!best || r.at >= best->at)) best = &r;
      wanted.emplace_back(x.id, best ? best->id : -1);
    }
    EXPECT_EQ(
        answers(timed("a", items, std::chrono::nanoseconds(jitter)), timed("t", rows, std::chrono::nanoseconds(jitter)),
                {.waiting = static_cast<std::size_t>(draw(1, 100))}, draw(1, 4)),
        wanted)
        << "seed " << seed;
  }
}

TEST(stream_joins, an_idle_table_holds_nobody_up) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<int> got{0};
  auto p =
      st::lookup("rows", st::from<event>("a") | st::event_time("a time", &event::at) | st::key_by(&event::key),
                 st::from<event>("t") | st::event_time("t time", &event::at, {.idle = 10ms}) | st::key_by(&event::key),
                 [](const event& x, const event* row) { return answer(x.id, row ? row->id : -1); }) |
      st::sink("keep", [&](const answer& x) {
        EXPECT_EQ(x.second, 7);
        ++got;
      });
  auto r = p.start(rt);
  EXPECT_EQ(r.input<event>("t").push({1, 10, 7}), st::pushed::ok);
  ASSERT_TRUE(test::comes_true([&] { return r.report().stages.back().in == 0 && r.report().items.absorbed == 1; }));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(r.input<event>("a").push({1, 1000 + i, i}), st::pushed::ok);
  EXPECT_TRUE(test::comes_true([&] { return got == 5; }));
  EXPECT_EQ(r.drain(test::patience).state, st::state::ended);
}

TEST(stream_joins, an_item_that_is_late_for_a_table_is_dropped_and_counted) {
  std::vector<event> rows, items;
  for (int i = 0; i < 200; i += 10) rows.push_back({1, i, i});
  for (int i = 0; i < 200; ++i) items.push_back({1, i, i});
  items.push_back({1, 5, 5000});
  troupe::runtime rt(troupe::options{.threads = 2});
  std::vector<answer> got;
  auto p = st::lookup("rows", timed("a", items) | st::key_by(&event::key), timed("t", rows) | st::key_by(&event::key),
                      [](const event& x, const event* row) { return answer(x.id, row ? row->id : -1); }) |
           st::sink("keep", [&](const answer& x) { got.push_back(x); });
  auto r = p.start(rt);
  r.wait();
  const st::report told = r.report();
  expect_balanced(told);
  ASSERT_EQ(got.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], answer(i, i / 10 * 10));
  EXPECT_EQ(told.items.dropped, 1u);
}

TEST(stream_joins, the_end_of_a_flow_is_no_time_for_what_lies_behind) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const std::vector<event> a{{1, 10, 0}, {1, 20, 1}}, b{{1, 12, 0}, {1, 25, 1}};
  int calls = 0;
  auto p = st::join("pairs", timed("a", a) | st::key_by(&event::key), timed("b", b) | st::key_by(&event::key),
                    st::within(5ns), [](const event& x, const event& y) { return pair(x.id, y.id); }) |
           st::process<int>(
               "asks", 0, [](auto& c, int&, const pair&) { c.wake_at(c.time() + 1s); },
               [&](auto& c, int&) {
                 ++calls;
                 c.wake_at(c.time() + 1s);  // those that are asked for at the end never come
               }) |
           st::sink("none", [](int) {});
  auto r = p.start(rt);
  ASSERT_TRUE(test::ends(r));
  r.wait();
  EXPECT_EQ(calls, 1);
}

TEST(stream_joins, a_table_with_times_is_read_on_by_items_without) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::vector<event> rows;
  for (int i = 0; i < 1000; ++i) rows.push_back({0, i, i});
  std::atomic<int> last{-1};
  auto p = st::lookup("rows", st::from<event>("items") | st::key_by(&event::key),
                      timed("table", rows) | st::key_by(&event::key),
                      [](const event&, const event* row) { return row ? row->id : -1; }, {.ahead = 10}) |
           st::sink("end", [&](int id) { last = id; });
  auto r = p.start(rt);
  auto in = r.input<event>("items");
  EXPECT_TRUE(test::comes_true([&] {
    EXPECT_EQ(in.push(event{0, 0, 0}), st::pushed::ok);
    return last == 999;
  })) << last;
}

}  // namespace
