// What this file is for: streams whose machine has its clock set by hours, forward and back, while they run.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Each test runs in a process of its own in which libfaketime says the time of day. That library reads how far it is
// off from a file at each question, so the test itself says between which two items the clock is set. The steady clock
// is left alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"
#include "tests/support/apart.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

namespace st = troupe::stream;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;
using std::chrono::system_clock;

// The clock that tells this process the time of day.
class wall_clock {
 public:
  explicit wall_clock(std::string file) : file_(std::move(file)) {}
  /// It is off by so much from now on.
  void set(std::chrono::seconds off) {
    const std::string next = file_ + ".next";
    std::ofstream(next) << (off < 0s ? "" : "+") << off.count() << "\n";
    std::filesystem::rename(next, file_);  // whoever asks meanwhile finds a whole file
  }

 private:
  const std::string file_;
};

// The clock, in a process that has one of its own. Elsewhere the test is run in such a process, and there is nothing
// left to do.
std::optional<wall_clock> own_clock() {
  constexpr const char* variable = "FAKETIME_TIMESTAMP_FILE";
  if (const char* file = std::getenv(variable)) {
    std::ifstream in("/proc/self/maps");
    const std::string loaded{std::istreambuf_iterator<char>(in), {}};
    if (loaded.find("libfaketime") == loaded.npos) {
      [] { GTEST_SKIP() << "libfaketime is not installed (on Debian: faketime)"; }();
      return {};
    }
    wall_clock own(file);
    const auto before = system_clock::now();
    own.set(3h);
    EXPECT_GE(system_clock::now() - before, 3h);
    own.set(0s);
    EXPECT_LT(system_clock::now() - before, 1h);
    return own;
  }
  if (test::sanitized) {
    [] { GTEST_SKIP() << "sanitizers want to be the first library that is loaded, and so does libfaketime"; }();
    return {};
  }
  const test::scratch_folder folder;
  const std::string file = folder.path() / "off";
  wall_clock(file).set(0s);
  test::child_options how;
  how.environment = {"LD_PRELOAD=/usr/$LIB/faketime/libfaketimeMT.so.1", variable + ("=" + file), "FAKETIME_NO_CACHE=1",
                     "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1"};
  test::run_apart(how, "the test cannot be started again");
  return {};
}

// ---- timers ---------------------------------------------------------------------------------------------------------

// Sets a clock by three hours, forward and back, as long as it lives.
class restless {
 public:
  explicit restless(wall_clock& c)
      : setter_([this, &c](const std::stop_token& end) {
          constexpr std::chrono::hours all[] = {3h, 0h, -3h};
          for (int i = 0; !end.stop_requested(); ++i) {
            c.set(all[i % 3]);
            ++times_;
            std::this_thread::yield();
          }
        }) {}
  int times() const { return times_; }

 private:
  std::atomic<int> times_{0};
  std::jthread setter_;
};

// Does something that must take at least so long, and that ends, until the clock has been set all ways meanwhile
// several times: once alone, all that counts might be asked while it is off by the same.
template <class F>
void expect_takes(std::chrono::milliseconds least, restless& clock, F what) {
  constexpr int enough = 6;
  int set_meanwhile = 0;
  for (int i = 0; i < 100 && set_meanwhile < enough && !testing::Test::HasFailure(); ++i) {
    const int before = clock.times();
    const auto began = steady::now();
    what();
    const auto took = steady::now() - began;
    EXPECT_GE(took, least);
    EXPECT_LT(took, test::patience);
    if (clock.times() - before > 3) ++set_meanwhile;
  }
  EXPECT_TRUE(set_meanwhile == enough || testing::Test::HasFailure()) << "the clock was not set while timers ran";
}

TEST(wall_clock_of_streams, ticks_and_sleeps_of_sources_do_not_follow_it) {
  auto own = own_clock();
  if (!own) return;
  restless clock(*own);
  troupe::runtime rt(troupe::options{.threads = 2});
  expect_takes(40ms, clock, [&] {
    test::gate fifth;
    auto p = st::from("ticks", st::ticks(10ms)) | st::sink("count", [&](std::uint64_t n) {
               if (n == 4) fifth.open();
             });
    auto r = p.start(rt);
    EXPECT_TRUE(fifth.pass());
  });
  expect_takes(30ms, clock, [&] {
    const auto sleeper = []() -> st::source<int> {
      for (int i = 0; i < 3; ++i) {
        const auto before = steady::now();
        co_await st::sleep(10ms);
        EXPECT_GE(steady::now() - before, 10ms);
        co_yield int(i);
      }
    };
    auto p = st::from("sleeper", sleeper()) | st::sink("end", [](int) {});
    auto r = p.start(rt);
    EXPECT_TRUE(r.wait_for(test::patience));
  });
}

TEST(wall_clock_of_streams, pauses_before_retries_and_delays_of_batches_do_not_follow_it) {
  auto own = own_clock();
  if (!own) return;
  restless clock(*own);
  troupe::runtime rt(troupe::options{.threads = 2});
  expect_takes(30ms, clock, [&] {
    std::vector<steady::time_point> calls;
    auto p = st::from("one", std::vector<int>{1}) |
             st::map("third time",
                     [&](const int& i) {
                       calls.push_back(steady::now());
                       if (calls.size() < 3) throw std::runtime_error("not yet");
                       return i;
                     },
                     {.fail = st::retry(2, 10ms)}) |
             st::sink("end", [](int) {});
    auto r = p.start(rt);
    EXPECT_TRUE(r.wait_for(test::patience));
    ASSERT_EQ(calls.size(), 3u);
    EXPECT_GE(calls[1] - calls[0], 10ms);
    EXPECT_GE(calls[2] - calls[1], 20ms);
  });
  expect_takes(20ms, clock, [&] {
    test::gate passed_on;
    auto p = st::from<int>("in") | st::batch("batch", {.items = 100, .delay = 20ms}) |
             st::sink("end", [&](const std::vector<int>&) { passed_on.open(); });
    auto r = p.start(rt);
    EXPECT_EQ(r.input<int>("in").push(1), st::pushed::ok);
    EXPECT_TRUE(passed_on.pass());
  });
}

TEST(wall_clock_of_streams, limits_of_waits_and_pushes_do_not_follow_it) {
  auto own = own_clock();
  if (!own) return;
  restless clock(*own);
  troupe::runtime rt(troupe::options{.threads = 2});
  test::gate goes_on;
  auto p = st::from<int>("in", {.items = 1}) | st::sink("held", [&](int) { EXPECT_TRUE(goes_on.pass()); });
  auto r = p.start(rt);
  auto in = r.input<int>("in");
  EXPECT_EQ(in.push(1), st::pushed::ok);
  expect_takes(20ms, clock, [&] {
    while (in.push_for(20ms, 2) == st::pushed::ok) {
    }
  });
  expect_takes(20ms, clock, [&] { EXPECT_FALSE(r.wait_for(20ms)); });
  goes_on.open();
  EXPECT_EQ(r.drain(test::patience).state, st::state::ended);
}

TEST(wall_clock_of_streams, idle_flows_are_told_by_another_clock) {
  auto own = own_clock();
  if (!own) return;
  restless clock(*own);
  troupe::runtime rt(troupe::options{.threads = 2});
  expect_takes(20ms, clock, [&] {
    test::gate over;
    const auto timed = [&](const std::string& name, std::chrono::nanoseconds idle) {
      return st::from<std::chrono::milliseconds>(name) |
             st::event_time(name + " time", [](std::chrono::milliseconds t) { return t; }, {.idle = idle});
    };
    auto p = st::merge("all", timed("quick", 0ns), timed("quiet", 20ms)) |
             st::window("windows", st::tumbling(10ms), {}, st::count()) | st::sink("end", [&](const auto& w) {
               EXPECT_EQ(w.value, 2u);
               over.open();
             });
    auto r = p.start(rt);
    EXPECT_EQ(r.input<std::chrono::milliseconds>("quiet").push(0ms), st::pushed::ok);
    EXPECT_EQ(r.input<std::chrono::milliseconds>("quick").push(1ms), st::pushed::ok);
    EXPECT_EQ(r.input<std::chrono::milliseconds>("quick").push(15ms), st::pushed::ok);
    EXPECT_TRUE(over.pass());  // the first of two windows: `quiet` holds it up no longer
    r.cancel();
  });
}

// ---- event time -----------------------------------------------------------------------------------------------------

// An item, and how far the clock is off from when it comes on.
struct reading {
  int number = 0;
  system_clock::time_point at{};
  std::optional<std::chrono::seconds> clock{};
};
// number of the key, end of the window, items
using row = std::tuple<int, std::int64_t, std::uint64_t>;
struct outcome {
  std::vector<row> rows;
  std::uint64_t late = 0;
};

// Counts readings by key in windows of a second, and sets the clock between them. One thread does it all.
outcome counts_of(const std::vector<reading>& all, wall_clock& clock, const st::event_time_options& o) {
  troupe::runtime rt(troupe::options{.threads = 1});
  outcome got;
  auto p = st::from("readings", all) |
           st::map("set the clock",
                   [&](const reading& r) {
                     if (r.clock) clock.set(*r.clock);
                     return r;
                   }) |
           st::event_time("time", &reading::at, o) | st::key_by(&reading::number) |
           st::window("seconds", st::tumbling(1s), {}, st::count()) |
           st::sink("keep", [&](const st::windowed<int, std::uint64_t>& w) {
             const std::int64_t end = w.window.end.time_since_epoch() / 1s;
             // A watermark that goes back would have a window end behind a later one.
             EXPECT_TRUE(got.rows.empty() || std::get<1>(got.rows.back()) <= end);
             EXPECT_EQ(w.revision, 0);
             got.rows.emplace_back(w.key, end, w.value);
           });
  auto r = p.start(rt);
  EXPECT_TRUE(r.wait_for(test::patience));
  clock.set(0s);
  const st::report told = r.report();
  test::expect_balanced(told);
  for (const auto& s : told.stages) got.late += s.late;
  EXPECT_EQ(told.items.dropped, got.late);
  return got;
}

TEST(wall_clock_of_streams, windows_are_the_same_where_no_item_is_ahead_of_it) {
  auto clock = own_clock();
  if (!clock) return;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<reading> all;
    const auto begin = system_clock::now() - 1h;
    for (int i = 0; i < 2'000; ++i) {
      const auto at =
          begin + std::chrono::milliseconds(i * 100 - static_cast<int>(random() % (i % 50 == 0 ? 60'000 : 2'000)));
      all.push_back({static_cast<int>(random() % 3), at});
    }
    const st::event_time_options o{.out_of_order = 1s, .ahead_max = 24h};
    const outcome wanted = counts_of(all, *clock, o);
    EXPECT_GT(wanted.late, 0u);
    constexpr std::chrono::hours offs[] = {0h, 3h, -3h, 10h, -10h};
    for (reading& r : all)
      if (random() % 40 == 0) r.clock = offs[random() % 5];
    const outcome got = counts_of(all, *clock, o);
    EXPECT_EQ(got.rows, wanted.rows);
    EXPECT_EQ(got.late, wanted.late);
  }
}

// Against a model. Times are ten minutes apart, and so is what the clock says, but for what the test takes.
TEST(wall_clock_of_streams, an_item_ahead_of_it_is_counted_and_makes_no_other_late_wherever_it_is_set_to) {
  auto clock = own_clock();
  if (!clock) return;
  constexpr auto step = 10min;
  constexpr int copies = 65;  // so the watermark is said before the next ones come
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto begin = std::chrono::floor<std::chrono::seconds>(system_clock::now());
    std::vector<reading> all;
    int off = 0;
    std::optional<int> latest;
    std::uint64_t late = 0;
    std::vector<int> in_time;
    for (int n = 0; n < 60; ++n) {
      const bool is_set = n == 0 || random() % 4 == 0;
      if (is_set) off = n == 0 ? 0 : static_cast<int>(random() % 37) - 18;
      // Some are ahead of the clock as it is, some are where it was before.
      const int at = static_cast<int>(random() % 37) - 18;
      if (latest && at < *latest) {
        late += copies;
      } else {
        in_time.push_back(n);
        if (at <= off) latest = at;
      }
      for (int c = 0; c < copies; ++c) {
        all.push_back({n, begin + at * step});
        if (is_set && c == 0) all.back().clock = off * step;
      }
    }
    const outcome got = counts_of(all, *clock, {.ahead_max = 1min});
    EXPECT_EQ(got.late, late);
    std::vector<int> counted;
    for (const auto& [key, end, count] : got.rows) {
      EXPECT_EQ(count, static_cast<std::uint64_t>(copies)) << "of reading " << key;
      counted.push_back(key);
    }
    std::sort(counted.begin(), counted.end());
    EXPECT_EQ(counted, in_time);
  }
}

TEST(wall_clock_of_streams, an_item_that_is_ahead_of_it_now_is_no_less_so_because_it_was_wrong_before) {
  auto clock = own_clock();
  if (!clock) return;
  const auto now = std::chrono::floor<std::chrono::seconds>(system_clock::now());
  std::vector<reading> all;
  const auto add = [&](int number, system_clock::time_point at, std::optional<std::chrono::seconds> off = {}) {
    for (int c = 0; c < 100; ++c) all.push_back({number, at});
    all[all.size() - 100].clock = off;
  };
  add(0, now - 10s, 3h);  // the machine's clock is wrong, then right; later the clock of whoever sends is wrong
  add(1, now - 5s, 0s);
  add(2, now + 2h);
  add(3, now);
  const outcome got = counts_of(all, *clock, {.ahead_max = 1min});
  EXPECT_EQ(got.late, 0u);
  std::vector<int> counted;
  for (const auto& [key, end, count] : got.rows) {
    EXPECT_EQ(count, 100u);
    counted.push_back(key);
  }
  EXPECT_EQ(counted, (std::vector<int>{0, 1, 3, 2}));
}

// Readings of more than an hour, one each second, which come as fast as they can be read. The clock is set on as they
// come.
TEST(wall_clock_of_streams, set_back_lets_windows_wait_until_it_is_right_again_and_loses_none) {
  auto clock = own_clock();
  if (!clock) return;
  const auto begin = std::chrono::floor<std::chrono::seconds>(system_clock::now());
  constexpr int seconds = 4'000, wrong_from = 1'500, wrong_to = 3'000, allowed = 60, unsaid = 64;
  std::atomic<int> over{0};
  int over_when_set_back = 0, over_when_set_right = 0, over_at_the_last = 0;
  const auto time_goes_on = [&](int i) {
    const bool is_wrong = i >= wrong_from && i < wrong_to;
    if (i == wrong_from) over_when_set_back = over;
    if (i == wrong_to) over_when_set_right = over;
    if (i == seconds - 1) over_at_the_last = over;
    if (i % 10 == 0) clock->set(std::chrono::seconds(i) - (is_wrong ? 3h : 0h));
    return i;
  };
  std::vector<std::int64_t> ends;
  troupe::runtime rt(troupe::options{.threads = 1});
  auto p = st::from("seconds", std::views::iota(0, seconds)) | st::map("clock", time_goes_on) |
           st::event_time("time", [&](int i) { return begin + std::chrono::seconds(i); }) |
           st::window("windows", st::tumbling(1s), {}, st::count()) | st::sink("keep", [&](const auto& w) {
             EXPECT_EQ(w.value, 1u);
             ends.push_back(w.window.end.time_since_epoch() / 1s);
             ++over;
           });
  auto r = p.start(rt);
  EXPECT_TRUE(r.wait_for(test::patience));
  EXPECT_LE(wrong_from - over_when_set_back, unsaid + 1);
  // What is up to `ahead_max` above the clock before it was set back counts.
  EXPECT_LE(over_when_set_right - over_when_set_back, allowed + unsaid + 10);
  EXPECT_LE(seconds - over_at_the_last, unsaid + 1);  // not only because the stream has ended
  EXPECT_EQ(over, seconds);
  EXPECT_TRUE(std::is_sorted(ends.begin(), ends.end()));
  EXPECT_EQ(r.report().items.dropped, 0u);
}

}  // namespace
