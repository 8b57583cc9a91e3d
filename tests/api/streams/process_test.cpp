// What this file is for: stages that keep a state for each key, with times at which they are called.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
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
};
using told = std::pair<int, int>;  // a key, and what is said of it

st::event_point point(std::int64_t ns) { return st::event_point(std::chrono::nanoseconds(ns)); }

template <class Stage>
std::vector<told> run(const std::vector<event>& all, Stage s, int threads = 1) {
  troupe::runtime rt(troupe::options{.threads = threads});
  std::vector<told> got;
  auto p = st::from("events", all) | st::event_time("time", &event::at, {.out_of_order = 20ns}) |
           st::key_by(&event::key) | std::move(s) | st::sink("keep", [&](const told& x) { got.push_back(x); });
  auto r = p.start(rt);
  EXPECT_TRUE(test::ends(r));
  r.wait();
  expect_balanced(r.report());
  EXPECT_EQ(r.report().items.in_flight, 0u);
  return got;
}

TEST(stream_process, each_key_has_a_state_of_its_own) {
  const auto got =
      run({{1, 0}, {2, 1}, {1, 2}, {1, 3}, {2, 4}}, st::process<told>("count", 0, [](auto& c, int& n, const event& e) {
            EXPECT_EQ(c.key(), e.key);
            EXPECT_EQ(c.time(), point(e.at));
            c.emit({e.key, ++n});
          }));
  EXPECT_EQ(got, (std::vector<told>{{1, 1}, {2, 1}, {1, 2}, {1, 3}, {2, 2}}));
}

TEST(stream_process, an_item_may_make_none_or_many) {
  const auto got = run({{1, 0}, {3, 1}, {0, 2}}, st::process<told>("copies", 0, [](auto& c, int&, const event& e) {
                         for (int i = 0; i < e.key; ++i) c.emit({e.key, i});
                       }));
  EXPECT_EQ(got, (std::vector<told>{{1, 0}, {3, 0}, {3, 1}, {3, 2}}));
}

TEST(stream_process, times_come_in_their_order_once_the_last_one_counts_and_the_end_brings_them) {
  std::vector<event> all{{1, 0}, {2, 1}, {3, 2}};
  for (int i = 3; i < 300; ++i) all.push_back({9, i});
  all.push_back({1, 300});
  const auto got = run(all, st::process<told>(
                                "quiet", 0,
                                [](auto& c, int& n, const event& e) {
                                  ++n;
                                  if (e.key != 9) c.wake_at(point(e.at + 50 - 10 * e.key));  // 2, then 3, then 1
                                  if (e.key == 2) c.wake_at(point(60));                      // counts instead
                                },
                                [](auto& c, int& n) {
                                  c.emit({c.key(), n});
                                }));
  EXPECT_EQ(got, (std::vector<told>{{3, 1}, {1, 1}, {2, 1}, {1, 2}}));
}

TEST(stream_process, a_time_that_has_passed_comes_at_once_and_one_may_ask_for_the_next) {
  std::vector<event> all;
  for (int i = 0; i < 500; ++i) all.push_back({0, i});
  const auto got = run(all, st::process<told>(
                                "ticks", 0,
                                [](auto& c, int& n, const event& e) {
                                  if (e.at == 0) c.wake_at(point(100));
                                  if (e.at == 450) {
                                    n = 1000;
                                    c.wake_at(point(5));
                                  }
                                },
                                [](auto& c, int& n) {
                                  c.emit({static_cast<int>(c.time().time_since_epoch().count()), n});
                                  if (n < 1000) c.wake_at(c.time() + 100ns);
                                }));
  EXPECT_EQ(got, (std::vector<told>{{100, 0}, {200, 0}, {300, 0}, {400, 0}, {5, 1000}}));
}

TEST(stream_process, keys_are_kept_by_the_times_of_items_however_fast_they_come) {
  const auto count = [](auto& c, int& n, const event& e) { c.emit({e.key, ++n}); };
  EXPECT_EQ(run({{1, 0}, {1, 1000}, {1, 1010}, {1, 5000}}, st::process<told>("count", 0, count, {.keep = 10ns})),
            (std::vector<told>{{1, 1}, {1, 1}, {1, 2}, {1, 1}}));
  // A time that is asked for beyond that never comes, and the state is new.
  const auto asks = [](auto& c, int& n, const event& e) {
    c.emit({e.key, ++n});
    c.wake_at(point(e.at + 20));
  };
  const auto on_time = [](auto& c, int&) { c.emit({c.key(), -1}); };
  EXPECT_EQ(run({{1, 0}, {1, 100}}, st::process<told>("asks", 0, asks, on_time, {.keep = 10ns})),
            (std::vector<told>{{1, 1}, {1, 1}}));
  EXPECT_EQ(run({{1, 0}, {1, 100}}, st::process<told>("asks", 0, asks, on_time, {.keep = 20ns})),
            (std::vector<told>{{1, 1}, {1, 1}, {1, -1}}));
}

TEST(stream_process, the_watermark_has_reached_the_time_of_a_call_also_at_the_end) {
  bool all = true;
  const auto got =
      run({{1, 0}, {2, 5}}, st::process<told>(
                                "asks", 0, [](auto& c, int&, const event& e) { c.wake_at(point(e.at + 1000)); },
                                [&](auto& c, int&) {
                                  all = all && c.watermark() >= c.time();
                                  c.emit({c.key(), 0});
                                }));
  EXPECT_EQ(got, (std::vector<told>{{1, 0}, {2, 0}}));
  EXPECT_TRUE(all);
}

TEST(stream_process, a_state_is_forgotten_when_it_is_told_to_or_after_its_time) {
  std::vector<event> all{{1, 0}, {2, 0}};
  for (int i = 1; i < 400; ++i) all.push_back({9, i});
  all.push_back({1, 400});
  all.push_back({2, 400});
  const auto counts = [](st::process_options o) {
    return st::process<told>(
        "count", 0,
        [](auto& c, int& n, const event& e) {
          if (e.key != 9) c.emit({e.key, ++n});
          if (e.key == 2) c.forget();
        },
        st::no_times(), o);
  };
  EXPECT_EQ(run(all, counts({})), (std::vector<told>{{1, 1}, {2, 1}, {1, 2}, {2, 1}}));
  EXPECT_EQ(run(all, counts({.keep = 100ns})), (std::vector<told>{{1, 1}, {2, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(run(all, counts({.keep = 1h})), (std::vector<told>{{1, 1}, {2, 1}, {1, 2}, {2, 1}}));
}

TEST(stream_process, sessions_by_hand_are_those_of_windows) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 any(seed);
    std::vector<event> all;
    std::int64_t now = 0;
    for (int i = 0; i < 2000; ++i) {
      now += std::uniform_int_distribution<int>(0, 9)(any);
      all.push_back({std::uniform_int_distribution<int>(0, 15)(any), now});
    }
    struct session {
      int items = 0;
      std::int64_t last = 0;
    };
    auto by_hand = run(all,
                       st::process<told>(
                           "sessions", session(),
                           [](auto& c, session& s, const event& e) {
                             if (s.items != 0 && e.at >= s.last + 40)  // the watermark has not come there yet
                               c.emit({e.key, std::exchange(s.items, 0)});
                             s = {s.items + 1, e.at};
                             c.wake_at(point(e.at + 40));
                           },
                           [](auto& c, session& s) {
                             c.emit({c.key(), s.items});
                             c.forget();
                           }),
                       1 + static_cast<int>(seed % 3));
    troupe::runtime rt(troupe::options{.threads = 1});
    std::vector<told> by_window;
    auto p = st::from("events", all) | st::event_time("time", &event::at) | st::key_by(&event::key) |
             st::window("sessions", st::session(40ns), {}, st::count()) |
             st::sink("keep", [&](const st::windowed<int, std::uint64_t>& w) {
               by_window.emplace_back(w.key, static_cast<int>(w.value));
             });
    p.start(rt).wait();
    std::sort(by_hand.begin(), by_hand.end());
    std::sort(by_window.begin(), by_window.end());
    EXPECT_EQ(by_hand, by_window) << "seed " << seed;
  }
}

TEST(stream_process, what_functions_throw_is_treated_as_the_options_say) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const std::vector<event> all{{1, 0}, {2, 1}, {1, 2}};
  const auto start = [&](auto stage, st::start_options o = {}) {
    auto p = st::from("events", all) | st::event_time("time", &event::at) | st::key_by(&event::key) | std::move(stage) |
             st::sink("keep", [](const told&) {});
    return p.start(rt, o);
  };
  const auto thrower = [](auto& c, int&, const event& e) {
    if (e.key == 2) throw std::runtime_error("two");
    c.emit({1, 1});
  };
  {
    auto r = start(st::process<told>("bad", 0, thrower));
    try {
      r.wait();
      ADD_FAILURE();
    } catch (const st::stage_failed& e) {
      EXPECT_EQ(e.stage(), "bad");
      EXPECT_EQ(e.item(), 1u);
    }
    expect_balanced(r.report());
  }
  {
    int dead = 0;
    st::start_options o;
    o.on_dead_letter = [&](const st::letter& l) {
      ASSERT_TRUE(l.as<event>());
      EXPECT_EQ(l.as<event>()->key, 2);
      ++dead;
    };
    auto r = start(st::process<told>("bad", 0, thrower, st::no_times(), {.fail = st::dead_letter}), o);
    r.wait();
    EXPECT_EQ(dead, 1);
    EXPECT_EQ(r.report().items.delivered, 2u);
    expect_balanced(r.report());
  }
  {
    auto r = start(st::process<told>(
        "bad", 0, [](auto& c, int&, const event&) { c.wake_at(point(1)); },
        [](auto&, int&) { throw std::runtime_error("on time"); }));
    EXPECT_THROW(r.wait(), st::stage_failed);
    expect_balanced(r.report());
  }
  EXPECT_THROW(start(st::process<told>("bad", 0, thrower, st::no_times(), {.fail = st::retry(1)})), troupe::error);
  EXPECT_THROW(start(st::process<told>("bad", 0, thrower, st::no_times(), {.keep = -1ns})), troupe::error);
}

TEST(stream_process, lanes_by_key_give_what_one_lane_gives_and_keep_the_order_of_each_key) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 any(seed);
    const auto draw = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(any); };
    std::vector<event> all;
    std::int64_t now = 0;
    const int keys = draw(1, 40);
    for (int i = 0, n = draw(0, 3000); i < n; ++i) all.push_back({draw(0, keys - 1), now += draw(0, 9)});
    const auto windows_of = [&](auto f) {
      return f | st::key_by(&event::key) | st::window("windows", st::tumbling(50ns), {}, st::count());
    };
    const auto rows = [&](int lanes) {
      troupe::runtime rt(troupe::options{.threads = draw(1, 4)});
      std::vector<std::tuple<std::int64_t, int, std::uint64_t>> got;
      const auto keep = [&](const st::windowed<int, std::uint64_t>& w) {
        got.emplace_back(w.window.begin.time_since_epoch().count(), w.key, w.value);
      };
      auto timed = st::from("events", all) | st::event_time("time", &event::at);
      auto p = lanes == 0
                   ? windows_of(timed) | st::sink("keep", keep)
                   : timed | st::by_key("lanes", lanes, &event::key, windows_of, {.items = 8}) | st::sink("keep", keep);
      auto r = p.start(rt);
      r.wait();
      expect_balanced(r.report());
      std::map<int, std::int64_t> last;
      for (const auto& [begin, key, count] : got) {
        const auto [at, is_first] = last.emplace(key, begin);
        if (is_first) continue;
        EXPECT_LT(at->second, begin) << "key " << key;
        at->second = begin;
      }
      std::sort(got.begin(), got.end());
      return got;
    };
    const auto wanted = rows(0);
    for (const int lanes : {1, 2, 7}) EXPECT_EQ(rows(lanes), wanted) << "seed " << seed << ", lanes " << lanes;
  }
}

TEST(stream_process, lanes_by_key_have_names_and_bounds) {
  const auto flow = [](int lanes) {
    return st::from("events", std::vector<event>{{1, 1}}) |
           st::by_key("lanes", lanes, &event::key, [](auto f) { return f | st::map("id", [](event e) { return e; }); });
  };
  EXPECT_THROW(flow(0), troupe::error);
  EXPECT_THROW(flow(129), troupe::error);
  troupe::runtime rt(troupe::options{.threads = 1});
  auto p = flow(3) | st::sink("none", [](const event&) {});
  const st::layout l = p.check(rt);
  EXPECT_EQ(l.parts.size(), 5u) << l.text();  // the source with the split, three lanes, what is merged
  EXPECT_EQ(l.parts.at(1).stages, std::vector<std::string>{"id#0"});
  EXPECT_EQ(l.parts.at(3).stages, std::vector<std::string>{"id#2"});
}

TEST(stream_process, lanes_by_key_may_join_other_flows) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::vector<event> items, rows;
  for (int i = 0; i < 300; ++i) items.push_back({i % 10, 1000 + i});
  for (int k = 0; k < 10; ++k) rows.push_back({k, k});
  std::atomic<int> found{0};
  std::vector<std::pair<int, std::int64_t>> got;
  auto p = st::from("items", items) | st::event_time("time", &event::at) |
           st::by_key("lanes", 3, &event::key,
                      [&](auto f) {
                        // Each lane has the whole table.
                        auto table = st::from("table", rows) | st::event_time("row time", &event::at);
                        return st::join(
                            "pairs", table | st::key_by(&event::key), f | st::key_by(&event::key), st::within(1h),
                            [](const event& row, const event& item) { return std::pair(row.key, item.at); });
                      }) |
           st::sink("keep", [&](const auto& x) { got.push_back(x); });
  auto r = p.start(rt);
  r.wait();
  EXPECT_EQ(got.size(), 300u);
  for (const auto& [key, at] : got) EXPECT_EQ(key, (at - 1000) % 10);
  std::set<std::string> names;
  for (const auto& s : r.report().stages) names.insert(s.name);
  for (const char* n : {"items", "time", "lanes", "table#0", "row time#1", "pairs#2"})
    EXPECT_TRUE(names.contains(n)) << n;
}

TEST(stream_process, what_was_emitted_before_a_function_threw_goes_on_at_once) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::atomic<int> got{0};
  auto p = st::from<event>("events") | st::event_time("time", &event::at) | st::key_by(&event::key) |
           st::process<int>("bad", 0,
                            [](auto& c, int&, const event&) {
                              c.emit(1);
                              throw std::runtime_error("afterwards");
                            },
                            {.fail = st::drop}) |
           st::sink("keep", [&](int) { ++got; });
  auto r = p.start(rt);
  EXPECT_EQ(r.input<event>("events").push({1, 1}), st::pushed::ok);
  EXPECT_TRUE(test::comes_true([&] { return got == 1; }));
  r.drain(test::patience);
  expect_balanced(r.report());
}

TEST(stream_process, the_end_of_all_times_may_be_asked_for) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::uint64_t counted = 0;
  auto p = st::from("events", std::vector<event>{{1, 1}, {2, 2}}) | st::event_time("time", &event::at) |
           st::key_by(&event::key) |
           st::process<int>(
               "ends", 0, [](auto& c, int&, const event&) { c.wake_at(st::event_point::max()); },
               [](auto& c, int&) { c.emit(c.key()); }) |
           st::window("w", st::sliding(10s, 2s), {}, st::count()) |
           st::sink("keep", [&](const auto& w) { counted += w.value; });
  auto r = p.start(rt);
  r.wait();
  EXPECT_EQ(counted, 10u);  // each of the two in five windows
}

TEST(stream_process, what_is_over_is_forgotten_before_an_item_is_refused) {
  troupe::runtime rt(troupe::options{.threads = 2});
  constexpr int count = 100'000;
  std::uint64_t got = 0;
  auto p = st::from("numbers", std::views::iota(0, count)) |
           st::event_time("time", [](int i) { return std::int64_t{1000} * i; }) | st::key_by([](int i) { return i; }) |
           st::process<int>("states", 0, [](auto& c, int& n, int) { c.emit(++n); },
                            {.keep = std::chrono::microseconds(10)}) |
           st::sink("end", [&](int) { ++got; });
  auto r = p.start(rt, {.state_bytes = 100'000});  // of keys that take 10 MB together
  ASSERT_TRUE(r.wait_for(test::patience));
  EXPECT_EQ(got, static_cast<std::uint64_t>(count));
  test::expect_balanced(r.report());
}

}  // namespace
