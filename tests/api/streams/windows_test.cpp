// What this file is for: event time: watermarks, windows, late items, idle flows; against a model.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"

namespace {

namespace st = troupe::stream;
using namespace std::chrono_literals;
using test::expect_balanced;

struct hit {
  std::string host;
  std::chrono::milliseconds at;
  int bytes = 1;
};
// host, begin in ms, end in ms, value, revision
using row = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, int>;

template <class R>
row row_of(const st::windowed<std::string, R>& w) {
  const auto ms = [](st::event_point p) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(p.time_since_epoch()).count();
  };
  return {w.key, ms(w.window.begin), ms(w.window.end), static_cast<std::int64_t>(w.value), w.revision};
}

std::vector<row> counts_of(const std::vector<hit>& hits, const st::windowing& w, const st::event_time_options& t = {},
                           const st::window_options& o = {}, st::report* told = nullptr) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::vector<row> got;
  auto p = st::from("hits", hits) | st::event_time("time", &hit::at, t) | st::key_by(&hit::host) |
           st::window("windows", w, o, st::count()) |
           st::sink("keep", [&](const st::windowed<std::string, std::uint64_t>& r) { got.push_back(row_of(r)); });
  auto r = p.start(rt);
  r.wait();
  expect_balanced(r.report());
  if (told) *told = r.report();
  return got;
}

TEST(stream_windows, tumbling_windows_count_for_each_key) {
  const std::vector<row> got = counts_of({{"a", 0ms}, {"b", 1ms}, {"a", 9ms}, {"a", 10ms}, {"b", 25ms}, {"a", -1ms}},
                                         st::tumbling(10ms), {.out_of_order = 1h});
  EXPECT_EQ(
      got, (std::vector<row>{
               {"a", -10, 0, 1, 0}, {"a", 0, 10, 2, 0}, {"b", 0, 10, 1, 0}, {"a", 10, 20, 1, 0}, {"b", 20, 30, 1, 0}}));
}

TEST(stream_windows, sliding_windows_overlap) {
  const std::vector<row> got = counts_of({{"a", 0ms}, {"a", 7ms}}, st::sliding(10ms, 5ms));
  EXPECT_EQ(got, (std::vector<row>{{"a", -5, 5, 1, 0}, {"a", 0, 10, 2, 0}, {"a", 5, 15, 1, 0}}));
  // A size that is no multiple of the slide: items are in two windows or in one.
  EXPECT_EQ(counts_of({{"a", 0ms}, {"a", 6ms}}, st::sliding(10ms, 7ms)),
            (std::vector<row>{{"a", -7, 3, 1, 0}, {"a", 0, 10, 2, 0}}));
}

TEST(stream_windows, sessions_end_after_a_gap_and_become_one_when_an_item_comes_between) {
  const std::vector<hit> hits{{"a", 0ms}, {"a", 30ms}, {"b", 12ms}, {"a", 48ms}, {"a", 39ms}, {"a", 8ms}};
  EXPECT_EQ(counts_of(hits, st::session(10ms), {.out_of_order = 1h}),
            (std::vector<row>{{"a", 0, 18, 2, 0}, {"b", 12, 22, 1, 0}, {"a", 30, 58, 3, 0}}));
}

TEST(stream_windows, a_late_item_is_the_next_revision_or_dropped_and_counted) {
  std::vector<hit> hits;
  for (int i = 0; i < 200; ++i) hits.push_back({"a", std::chrono::milliseconds(i)});  // moves the watermark on
  hits.push_back({"a", 185ms});                                                       // of a window that is open
  hits.push_back({"a", 165ms});  // late by less than is allowed: 160..170 is over
  hits.push_back({"b", 166ms});
  hits.push_back({"a", 55ms});  // too late
  st::report told;
  std::vector<row> got = counts_of(hits, st::tumbling(10ms), {}, {.late = 60ms}, &told);
  EXPECT_EQ(std::count(got.begin(), got.end(), row{"a", 160, 170, 10, 0}), 1);
  EXPECT_EQ(std::count(got.begin(), got.end(), row{"a", 160, 170, 11, 1}), 1);
  EXPECT_EQ(std::count(got.begin(), got.end(), row{"b", 160, 170, 1, 0}), 1);
  EXPECT_EQ(std::count(got.begin(), got.end(), row{"a", 180, 190, 11, 0}) +
                std::count(got.begin(), got.end(), row{"a", 180, 190, 11, 1}),
            1);
  EXPECT_EQ(std::count(got.begin(), got.end(), row{"a", 50, 60, 10, 0}), 1);
  EXPECT_EQ(told.stages[2].late, 1u);
  EXPECT_EQ(told.items.dropped, 1u);
}

TEST(stream_windows, a_wrong_clock_does_not_make_the_others_late) {
  using std::chrono::system_clock;
  struct reading {
    system_clock::time_point at;
    bool is_wrong;
  };
  troupe::runtime rt(troupe::options{.threads = 1});
  const auto begin = system_clock::now() - 1h;
  std::vector<reading> all;
  for (int i = 0; i < 1000; ++i) {
    all.push_back({begin + std::chrono::milliseconds(i), false});
    if (i % 100 == 50) all.push_back({system_clock::now() + 10min, true});
  }
  std::uint64_t right = 0, wrong = 0;
  auto p = st::from("readings", all) | st::event_time("time", &reading::at, {.ahead_max = 1min}) |
           st::key_by(&reading::is_wrong) | st::window("seconds", st::tumbling(1ms), {}, st::count()) |
           st::sink("sum", [&](const st::windowed<bool, std::uint64_t>& w) { (w.key ? wrong : right) += w.value; });
  auto r = p.start(rt);
  r.wait();
  EXPECT_EQ(right, 1000u);
  EXPECT_EQ(wrong, 10u);
  EXPECT_EQ(r.report().items.dropped, 0u);
}

TEST(stream_windows, merged_flows_wait_for_the_slowest_unless_it_is_idle) {
  for (const bool may_be_idle : {false, true}) {
    troupe::runtime rt(troupe::options{.threads = 2});
    std::atomic<int> over{0};
    const auto timed = [&](const char* name, std::chrono::nanoseconds idle) {
      return st::from<hit>(name) | st::event_time(std::string(name) + " time", &hit::at, {.idle = idle});
    };
    auto p = st::merge("all", timed("quick", 0ns), timed("quiet", may_be_idle ? 20ms : 0ms)) | st::key_by(&hit::host) |
             st::window("windows", st::tumbling(10ms), {}, st::count()) |
             st::sink("keep", [&](const auto&) { ++over; });
    auto r = p.start(rt);
    EXPECT_EQ(r.input<hit>("quiet").push({"b", 0ms}), st::pushed::ok);
    for (int i = 0; i < 500; ++i)
      EXPECT_EQ(r.input<hit>("quick").push({"a", std::chrono::milliseconds(i)}), st::pushed::ok);
    const auto end =
        std::chrono::steady_clock::now() + (may_be_idle ? std::chrono::milliseconds(test::patience) : 200ms);
    while (over < 40 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (may_be_idle) {
      EXPECT_GE(over, 40);  // nothing came from it for 20 ms
    } else {
      EXPECT_EQ(over, 0);  // windows of 0 to 10 ms are not over as far as it has said
    }
    EXPECT_EQ(r.input<hit>("quiet").push({"b", 600ms}), st::pushed::ok);
    const auto later = std::chrono::steady_clock::now() + test::patience;
    while (over < 40 && std::chrono::steady_clock::now() < later) std::this_thread::yield();
    EXPECT_GE(over, 40);
    EXPECT_EQ(r.drain(test::patience).state, st::state::ended);
    EXPECT_EQ(over, 50 + 2);
    EXPECT_EQ(r.report().items.dropped, 0u);
    expect_balanced(r.report());
  }
}

TEST(stream_windows, a_window_without_keys_holds_all_items_and_folds_are_chosen) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::vector<std::vector<int>> got;
  int most = 0;
  auto [a, b] = st::from("hits", std::vector<hit>{{"a", 0ms, 5}, {"b", 3ms, 9}, {"c", 12ms, 4}}) |
                st::event_time("time", [](const hit& h) { return h.at; }) | st::tee<2>("tee");
  auto left = a | st::map("bytes", [](const hit& h) { return h.bytes; }) |
              st::window("lists", st::tumbling(10ms), {}, st::collect<int>()) |
              st::sink("keep", [&](const st::windowed<st::all_items, std::vector<int>>& w) { got.push_back(w.value); });
  auto right =
      b |
      st::window("largest", st::tumbling(1h), {}, st::fold(0, [](int& m, const hit& h) { m = std::max(m, h.bytes); })) |
      st::sink("most", [&](const auto& w) { most = w.value; });
  auto p = left + right;
  p.start(rt).wait();
  EXPECT_EQ(got, (std::vector<std::vector<int>>{{5, 9}, {4}}));
  EXPECT_EQ(most, 9);
}

TEST(stream_windows, windows_of_windows_have_the_time_of_what_they_are_made_of) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::vector<std::uint64_t> got;
  std::vector<hit> hits;
  for (int i = 0; i < 1000; ++i) hits.push_back({"h" + std::to_string(i % 3), std::chrono::milliseconds(i)});
  auto p = st::from("hits", hits) | st::event_time("time", &hit::at) | st::key_by(&hit::host) |
           st::window("each", st::tumbling(10ms), {}, st::count()) | st::async({.items = 3}) |
           st::window("all", st::tumbling(100ms), {},
                      st::sum_of(std::uint64_t{0},
                                 [](const st::windowed<std::string, std::uint64_t>& w) { return w.value; })) |
           st::sink("keep", [&](const auto& w) { got.push_back(w.value); });
  auto r = p.start(rt);
  r.wait();
  EXPECT_EQ(got, std::vector<std::uint64_t>(10, 100));
  EXPECT_EQ(r.report().items.dropped, 0u);
}

TEST(stream_windows, times_out_of_range_and_items_without_one_fail_the_stream) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const auto fails = [&](auto flow, const std::string& stage) {
    auto p = flow | st::window("w", st::tumbling(1s), {}, st::count()) | st::sink("end", [](const auto&) {});
    auto r = p.start(rt);
    try {
      r.wait();
      ADD_FAILURE();
    } catch (const st::stage_failed& e) {
      EXPECT_EQ(e.stage(), stage);
    }
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double seconds : {nan, std::numeric_limits<double>::infinity(), 1e12, -1e12, 4.7e9})
    fails(st::from("one", std::vector<double>{seconds}) |
              st::event_time("time", [](double s) { return std::chrono::duration<double>(s); }),
          "time");
  fails(st::from("one", std::vector<int>{1}), "w");
  for (const std::int64_t ns : {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()})
    fails(st::from("one", std::vector<std::int64_t>{ns}) | st::event_time("time", [](std::int64_t t) { return t; }),
          "time");
  // The first and the last moment that there are do no harm.
  for (const std::int64_t ns : {std::int64_t{1} << 62, -(std::int64_t{1} << 62)}) {
    int got = 0;
    auto p = st::from("one", std::vector<std::int64_t>{ns}) | st::event_time("time", [](std::int64_t t) { return t; }) |
             st::window("w", st::sliding(2h, 1h), {.late = 1h}, st::count()) |
             st::sink("end", [&](const auto&) { ++got; });
    p.start(rt).wait();
    EXPECT_GE(got, 1);
  }
}

TEST(stream_windows, wrong_windows_are_refused) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const auto refused = [](const auto& f) {
    try {
      f();
      ADD_FAILURE();
    } catch (const troupe::error& e) {
      EXPECT_EQ(e.code(), troupe::errc::bad_argument);
      EXPECT_NE(std::string(e.what()).find("'w'"), std::string::npos) << e.what();
    }
  };
  const auto times =
      st::from("t", std::vector<std::int64_t>{1}) | st::event_time("e", [](std::int64_t t) { return t; });
  for (const st::windowing& w : {st::tumbling(0s), st::tumbling(-1s), st::tumbling(std::chrono::nanoseconds::max()),
                                 st::sliding(1s, 0s), st::sliding(1s, 2s), st::session(0s)})
    refused([&] { static_cast<void>(times | st::window("w", w, {}, st::count())); });
  refused([&] { static_cast<void>(times | st::window("w", st::tumbling(1s), {.late = -1s}, st::count())); });
  refused([&] {
    static_cast<void>(times | st::window("w", st::session(1s), {}, st::fold(0, [](int& n, std::int64_t) { ++n; })));
  });
  refused(
      [&] { static_cast<void>(times | st::event_time("w", [](std::int64_t t) { return t; }, {.out_of_order = -1s})); });
}

TEST(stream_windows, flows_that_are_all_idle_let_windows_end_whichever_was_idle_first) {
  for (const bool a_is_first : {true, false}) {
    troupe::runtime rt(troupe::options{.threads = 2});
    std::atomic<int> over{0};
    const auto timed = [&](const char* name, std::chrono::nanoseconds idle) {
      return st::from<hit>(name) | st::event_time(std::string(name) + " time", &hit::at, {.idle = idle});
    };
    auto p = st::merge("all", timed("a", a_is_first ? 5ms : 50ms), timed("b", a_is_first ? 50ms : 5ms)) |
             st::key_by(&hit::host) | st::window("windows", st::tumbling(10ms), {}, st::count()) |
             st::sink("keep", [&](const auto&) { ++over; });
    auto r = p.start(rt);
    EXPECT_EQ(r.input<hit>("a").push({"x", 1ms}), st::pushed::ok);
    EXPECT_EQ(r.input<hit>("a").push({"x", 100ms}), st::pushed::ok);
    EXPECT_EQ(r.input<hit>("b").push({"x", 2ms}), st::pushed::ok);
    const auto end = std::chrono::steady_clock::now() + test::patience;
    while (over == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(over, 1);
  }
}

TEST(stream_windows, an_item_at_the_end_of_a_session_begins_another_one) {
  EXPECT_EQ(counts_of({{"a", 0ms}, {"a", 10ms}, {"a", 19ms}}, st::session(10ms)),
            (std::vector<row>{{"a", 0, 10, 1, 0}, {"a", 10, 29, 2, 0}}));
}

TEST(stream_windows, batches_have_no_time) {
  troupe::runtime rt(troupe::options{.threads = 1});
  auto p = st::from("hits", std::vector<hit>{{"a", 1ms}, {"a", 2ms}}) | st::event_time("time", &hit::at) |
           st::batch("two", {.items = 2}) | st::unbatch("one") | st::key_by(&hit::host) |
           st::window("w", st::tumbling(1s), {}, st::count()) | st::sink("end", [](const auto&) {});
  auto r = p.start(rt);
  EXPECT_THROW(r.wait(), st::stage_failed);
}

// ---- against a model ------------------------------------------------------------------------------------------------

struct event {
  int key;
  std::int64_t ms;
};

// What all windows hold in the end: for each key and window the number of its items.
std::map<std::tuple<int, std::int64_t, std::int64_t>, std::int64_t> model(const std::vector<event>& all,
                                                                          const st::windowing& w) {
  std::map<std::tuple<int, std::int64_t, std::int64_t>, std::int64_t> counts;
  const std::int64_t size = w.size / 1ms, slide = w.slide / 1ms;
  if (w.kind == st::windowing::shape::session) {
    std::map<int, std::vector<std::int64_t>> by_key;
    for (const event& e : all) by_key[e.key].push_back(e.ms);
    for (auto& [key, times] : by_key) {
      std::sort(times.begin(), times.end());
      for (std::size_t i = 0; i < times.size();) {
        std::size_t j = i + 1;
        while (j < times.size() && times[j] < times[j - 1] + size) ++j;
        counts[{key, times[i], times[j - 1] + size}] = static_cast<std::int64_t>(j - i);
        i = j;
      }
    }
    return counts;
  }
  for (const event& e : all)
    for (std::int64_t begin = -20 * size; begin <= e.ms; ++begin)
      if (begin % slide == 0 && e.ms < begin + size) ++counts[{e.key, begin, begin + size}];
  return counts;
}

TEST(stream_windows, windows_drawn_at_random_equal_a_model) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto number = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
    const int disorder = number(0, 30), size = number(1, 20);
    st::windowing w = st::tumbling(std::chrono::milliseconds(size));
    if (number(0, 2) == 0) w = st::sliding(std::chrono::milliseconds(size), std::chrono::milliseconds(number(1, size)));
    if (number(0, 2) == 0) w = st::session(std::chrono::milliseconds(size));
    // Times that come at most `disorder` too late: none is late.
    std::vector<event> all;
    for (int i = number(0, 400), t = 0; i > 0; --i) {
      t += number(0, 3) == 0 ? number(0, 40) : 0;
      all.push_back({number(0, 3), t + number(0, disorder)});
    }
    troupe::runtime rt(troupe::options{.threads = number(1, 3)});
    std::map<std::tuple<int, std::int64_t, std::int64_t>, std::int64_t> got;
    const auto at = [](const event& e) { return std::chrono::milliseconds(e.ms); };
    const st::event_time_options o{.out_of_order = std::chrono::milliseconds(disorder)};
    // With or without edges, lanes and another flow on the way.
    auto source = st::from("events", all) | st::event_time("time", at, o);
    auto flow = number(0, 1) == 0 ? source : source | st::async({.items = static_cast<std::size_t>(number(1, 5))});
    if (number(0, 1) == 0)
      flow = flow | st::map("lanes", [](event e) { return e; },
                            {.parallel = number(2, 4), .order = number(0, 1) == 0 ? st::ordered : st::unordered});
    if (number(0, 2) == 0) {
      const std::vector<event> more(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
      flow = st::merge("merge", flow, st::from("more", more) | st::event_time("more time", at, o));
      all.insert(all.end(), more.begin(), more.end());
    }
    auto p = flow | st::key_by(&event::key) | st::window("w", w, {}, st::count()) |
             st::sink("keep", [&](const st::windowed<int, std::uint64_t>& r) {
               const auto ms = [](st::event_point t) { return t.time_since_epoch() / 1ms; };
               EXPECT_EQ(r.revision, 0);
               const bool is_new = got.emplace(std::tuple(r.key, ms(r.window.begin), ms(r.window.end)),
                                               static_cast<std::int64_t>(r.value))
                                       .second;
               EXPECT_TRUE(is_new);
             });
    auto r = p.start(rt);
    ASSERT_TRUE(r.wait_for(test::patience)) << r.report().text();
    EXPECT_EQ(got, model(all, w));
    EXPECT_EQ(r.report().items.dropped, 0u) << r.report().text();
    expect_balanced(r.report());
    if (HasFailure()) break;
  }
}

// What windows that slide say, as parts of which they are put together and window by window.
TEST(stream_windows, windows_that_slide_say_the_same_with_and_without_a_merge) {
  using told = std::tuple<std::int64_t, std::uint64_t>;
  const auto rows = [](const std::vector<std::int64_t>& times, std::chrono::nanoseconds size,
                       std::chrono::nanoseconds slide, bool has_merge) {
    troupe::runtime rt(troupe::options{.threads = 1});
    std::vector<told> got;
    const auto keep = [&](const st::windowed<st::all_items, std::uint64_t>& w) {
      got.emplace_back(w.window.begin.time_since_epoch().count(), w.value);
    };
    const auto add = [](std::uint64_t& n, std::int64_t) { ++n; };
    auto f = st::from("times", times) | st::event_time("time", [](std::int64_t t) { return t; });
    auto p = has_merge ? f | st::window("w", st::sliding(size, slide), {}, st::count()) | st::sink("keep", keep)
                       : f | st::window("w", st::sliding(size, slide), {}, st::fold(std::uint64_t{0}, add)) |
                             st::sink("keep", keep);
    auto r = p.start(rt);
    r.wait();
    std::uint64_t late = 0;
    for (const auto& s : r.report().stages) late += s.late;
    got.emplace_back(-1, late);
    std::sort(got.begin(), got.end());
    return got;
  };
  // A late item behind a gap: windows in which there was nothing are over.
  std::vector<std::int64_t> gap{0};
  for (int i = 0; i < 70; ++i) gap.push_back(100);
  gap.push_back(95);
  EXPECT_EQ(rows(gap, 10ns, 2ns, true), rows(gap, 10ns, 2ns, false));
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 any(seed);
    const auto draw = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(any); };
    const int slide = draw(1, 10), parts = draw(2, 6);
    std::vector<std::int64_t> times;
    std::int64_t now = draw(-500, 500);
    for (int i = 0, n = draw(1, 800); i < n; ++i) {
      now += draw(0, 20) == 0 ? draw(0, 300) : draw(0, 3);
      times.push_back(now - (draw(0, 9) == 0 ? draw(0, 60) : 0));
    }
    EXPECT_EQ(rows(times, std::chrono::nanoseconds(slide * parts), std::chrono::nanoseconds(slide), true),
              rows(times, std::chrono::nanoseconds(slide * parts), std::chrono::nanoseconds(slide), false))
        << "seed " << seed;
  }
}

TEST(stream_windows, a_merge_that_throws_fails_the_stream_with_its_stage) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::vector<std::int64_t> times(200);
  std::iota(times.begin(), times.end(), 0);
  auto p = st::from("times", times) | st::event_time("time", [](std::int64_t t) { return t; }) |
           st::window("sums", st::sliding(10ns, 2ns), {},
                      st::fold(
                          0, [](int& n, std::int64_t) { ++n; }, [](int&, int&) { throw std::runtime_error("no"); })) |
           st::sink("none", [](const auto&) {});
  auto r = p.start(rt);
  try {
    r.wait();
    ADD_FAILURE();
  } catch (const st::stage_failed& e) {
    EXPECT_EQ(e.stage(), "sums");
  }
  expect_balanced(r.report());
}

TEST(stream_windows, reports_say_how_far_stages_have_come_in_time) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const auto begin = std::chrono::system_clock::now() - 1h;
  auto p = st::from<int>("in") |
           st::event_time("time", [&](int i) { return begin + std::chrono::seconds(i); }, {.out_of_order = 10s}) |
           st::key_by([](int) { return 0; }) | st::window("minutes", st::tumbling(1min), st::count()) |
           st::sink("end", [](const auto&) {});
  auto r = p.start(rt);
  EXPECT_FALSE(r.report().stages[1].watermark);
  for (int i = 0; i <= 600; ++i) ASSERT_EQ(r.input<int>("in").push(int(i)), st::pushed::ok);
  ASSERT_TRUE(r.barrier(test::patience));
  const st::report told = r.report();
  for (const std::size_t stage : {1, 2, 3}) {
    ASSERT_TRUE(told.stages[stage].watermark && told.stages[stage].watermark_lag) << told.text();
    EXPECT_EQ(*told.stages[stage].watermark, begin + 590s);
    EXPECT_GE(*told.stages[stage].watermark_lag, 1h - 590s);
    EXPECT_LT(*told.stages[stage].watermark_lag, 1h - 590s + test::patience);
  }
  EXPECT_NE(told.text().find("minutes has come to items of 30"), std::string::npos) << told.text();
}

}  // namespace
