// What this file is for: how streams begin and end: inputs, drains, cancellation, runtimes that go first, coroutines.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <numeric>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"

namespace {

namespace st = troupe::stream;
using namespace std::chrono_literals;
using test::expect_balanced;

TEST(stream_life, threads_outside_push_and_close) {
  troupe::runtime rt(troupe::options{.threads = 2});
  long sum = 0;
  auto p = st::from<int>("in", {.items = 3}) | st::map("m", [](int i) { return i + 1; }) |
           st::sink("sum", [&](int i) { sum += i; });
  auto r = p.start(rt);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto in = r.input<int>("in");
      for (int i = 0; i < 2000; ++i) {
        int item = t * 2000 + i;
        switch (i % 3) {
          case 0:
            EXPECT_EQ(in.push(item), st::pushed::ok);
            break;
          case 1:
            while (in.try_push(item) == st::pushed::full) std::this_thread::yield();
            break;
          default:
            EXPECT_EQ(in.push_for(test::patience, std::move(item)), st::pushed::ok);
        }
      }
    });
  for (auto& t : threads) t.join();
  auto in = r.input<int>("in");
  in.close();
  in.close();
  EXPECT_EQ(in.push(1), st::pushed::closed);
  r.wait();
  EXPECT_EQ(sum, 8000L * 8001 / 2);
  EXPECT_EQ(r.report().items.pushed, 8000u);
  expect_balanced(r.report());
}

TEST(stream_life, a_push_tells_that_there_is_no_room_and_leaves_the_item) {
  troupe::runtime rt(troupe::options{.threads = 2});
  test::gate go;
  const test::opener last(go);
  auto p =
      st::from<std::string>("in", {.items = 2}) | st::sink("slow", [&](const std::string&) { EXPECT_TRUE(go.pass()); });
  auto r = p.start(rt);
  auto in = r.input<std::string>("in");
  EXPECT_EQ(in.push(std::string("a")), st::pushed::ok);
  EXPECT_EQ(in.push(std::string("b")), st::pushed::ok);
  std::string third(50, 'c');
  EXPECT_EQ(in.try_push(std::move(third)), st::pushed::full);
  EXPECT_EQ(third.size(), 50u);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(in.push_for(30ms, std::move(third)), st::pushed::full);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 30ms);
  EXPECT_EQ(third.size(), 50u);
  std::thread waits([&] { EXPECT_EQ(in.push(std::move(third)), st::pushed::ok); });
  go.open();
  waits.join();
  in.close();
  r.wait();
  EXPECT_EQ(r.report().items.delivered, 3u);
}

TEST(stream_life, a_push_that_waits_is_told_when_the_stream_ends) {
  troupe::runtime rt(troupe::options{.threads = 2});
  test::gate go;
  const test::opener last(go);
  auto p = st::from<int>("in", {.items = 1}) | st::sink("slow", [&](int) { EXPECT_TRUE(go.pass()); });
  auto r = p.start(rt);
  auto in = r.input<int>("in");
  EXPECT_EQ(in.push(1), st::pushed::ok);
  std::thread waits([&] { EXPECT_EQ(in.push(2), st::pushed::closed); });
  while (r.report().edges[0].items == 0) std::this_thread::yield();
  r.cancel();
  waits.join();
  go.open();
  EXPECT_TRUE(test::ends(r));
  EXPECT_EQ(in.try_push(3), st::pushed::closed);
}

TEST(stream_life, tasks_on_all_workers_may_wait_for_room) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<long> sum{0};
  auto p = st::from<int>("in", {.items = 1}) | st::sink("sum", [&](int i) { sum += i; });
  auto r = p.start(rt);
  std::vector<troupe::future<void>> tasks;
  for (int t = 0; t < 8; ++t)
    tasks.push_back(rt.spawn([&] {
      auto in = r.input<int>("in");
      for (int i = 0; i < 200; ++i) EXPECT_EQ(in.push(i), st::pushed::ok);
    }));
  for (auto& t : tasks) ASSERT_TRUE(t.wait_for(test::patience));
  r.input<int>("in").close();
  r.wait();
  EXPECT_EQ(sum, 8 * 199 * 100);
}

TEST(stream_life, a_stage_that_waits_for_its_own_stream_is_told) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::optional<st::running> r;
  test::gate there, done;
  std::atomic<int> told{0};
  auto p = st::from<int>("in", {.items = 1}) | st::sink("back", [&](int) {
             EXPECT_TRUE(there.pass());
             try {
               r->input<int>("in").push(1);
             } catch (const troupe::error& e) {
               told += e.code() == troupe::errc::would_deadlock;
             }
             EXPECT_EQ(r->input<int>("in").try_push(1), st::pushed::full);
             try {
               r->wait();
             } catch (const troupe::error& e) {
               told += e.code() == troupe::errc::would_deadlock;
             }
             done.open();
           });
  r.emplace(p.start(rt));
  there.open();
  EXPECT_EQ(r->input<int>("in").push(1), st::pushed::ok);
  ASSERT_TRUE(done.pass());
  r->input<int>("in").close();
  r->wait();
  EXPECT_EQ(told, 2);
}

TEST(stream_life, a_drain_that_is_refused_ends_nothing) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::optional<st::running> r;
  test::gate there, told;
  std::atomic<int> items{0};
  auto p = st::from<int>("in") | st::sink("drains", [&](int) {
             if (items++ != 0) return;
             EXPECT_TRUE(there.pass());
             try {
               (void)r->drain(10s);
             } catch (const troupe::error& e) {
               if (e.code() == troupe::errc::would_deadlock) told.open();
             }
           });
  r.emplace(p.start(rt));
  there.open();
  EXPECT_EQ(r->input<int>("in").push(1), st::pushed::ok);
  ASSERT_TRUE(told.pass());
  EXPECT_EQ(r->input<int>("in").push(1), st::pushed::ok);
  r->input<int>("in").close();
  r->wait();
  EXPECT_EQ(items, 2);
}

TEST(stream_life, a_stage_may_destroy_its_own_stream) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::optional<st::running> r;
  test::gate there, gone;
  auto p = st::from("endless", std::views::iota(0)) | st::sink("end", [&](int i) {
             if (i != 10) return;
             EXPECT_TRUE(there.pass());
             r.reset();
             gone.open();
           });
  r.emplace(p.start(rt));
  there.open();
  EXPECT_TRUE(gone.pass());
  rt.wait_all();
}

TEST(stream_life, inputs_are_found_by_name_and_type) {
  troupe::runtime rt(troupe::options{.threads = 1});
  auto p = st::from<int>("in") | st::sink("end", [](int) {});
  auto r = p.start(rt);
  EXPECT_THROW(r.input<int>("other"), troupe::error);
  EXPECT_THROW(r.input<long>("in"), troupe::error);
  EXPECT_THROW(r.input<int>("end"), troupe::error);
}

TEST(stream_life, drain_stops_sources_and_passes_on_what_is_inside) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<long> made{0}, got{0};
  auto p = st::merge("all", st::from("endless", [&]() -> std::optional<long> { return made++; }) | st::async(),
                     st::from<long>("in")) |
           st::batch("batch", {.items = 1000, .delay = 1h}) | st::unbatch("again") |
           st::sink("end", [&](long) { ++got; });
  auto r = p.start(rt);
  EXPECT_EQ(r.input<long>("in").push(5), st::pushed::ok);
  while (got < 5000) std::this_thread::yield();
  const st::report told = r.drain(test::patience);
  EXPECT_EQ(told.state, st::state::ended);
  EXPECT_EQ(got, made + 1);
  EXPECT_EQ(told.items.in_flight, 0u);
  expect_balanced(told);
  EXPECT_EQ(r.drain(1s).items.delivered, told.items.delivered);
  EXPECT_EQ(r.input<long>("in").push(5), st::pushed::closed);
  r.wait();
}

TEST(stream_life, a_drain_out_of_time_reports_what_is_left) {
  troupe::runtime rt(troupe::options{.threads = 2});
  test::gate go, begun;
  const test::opener last(go);
  auto p = st::from("numbers", std::views::iota(0)) | st::async({.items = 10}) | st::sink("stuck", [&](int) {
             begun.open();
             EXPECT_TRUE(go.pass());
           });
  auto r = p.start(rt);
  ASSERT_TRUE(begun.pass());
  while (r.report().edges[0].items != 10) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  const st::report told = r.drain(50ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, test::patience);
  EXPECT_EQ(told.state, st::state::cancelled);
  EXPECT_EQ(told.items.pushed, 10u);
  EXPECT_EQ(told.items.delivered, 0u);
  EXPECT_EQ(told.items.in_flight, 10u);
  go.open();
  EXPECT_TRUE(test::ends(r));
  EXPECT_EQ(r.report().items.delivered, 1u);
  expect_balanced(r.report());
}

TEST(stream_life, a_stop_token_cancels_and_so_does_the_destructor) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::stop_source stop;
  auto p = st::from("endless", std::views::iota(0)) | st::sink("end", [](int) {});
  auto r = p.start(rt, {.stop = stop.get_token()});
  EXPECT_FALSE(r.wait_for(1ms));
  stop.request_stop();
  try {
    EXPECT_TRUE(r.wait_for(test::patience));
    FAIL();
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), troupe::errc::cancelled);
  }
  EXPECT_EQ(r.report().state, st::state::cancelled);

  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> seen = alive;
  {
    auto q = st::from("endless", std::views::iota(0)) | st::async() |
             st::sink("end", [alive = std::move(alive)](int i) { *alive = i; });
    auto s = q.start(rt);
  }
  rt.wait_all();
  EXPECT_TRUE(seen.expired());
}

TEST(stream_life, a_token_that_was_stopped_before_cancels_at_once) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::stop_source stop;
  stop.request_stop();
  auto p = st::from("endless", std::views::iota(0)) | st::sink("end", [](int) {});
  auto r = p.start(rt, {.stop = stop.get_token()});
  EXPECT_TRUE(test::ends(r));
}

TEST(stream_life, a_runtime_that_goes_first_fails_the_stream) {
  std::optional<troupe::runtime> rt(std::in_place, troupe::options{.threads = 2});
  auto p = st::from("endless", std::views::iota(0)) | st::async() | st::sink("end", [](int) {});
  auto q = st::from<int>("in") | st::sink("end", [](int) {});
  auto r = p.start(*rt);
  auto s = q.start(*rt);
  auto in = s.input<int>("in");
  EXPECT_EQ(in.push(1), st::pushed::ok);
  rt.reset();
  try {
    EXPECT_TRUE(r.wait_for(test::patience));
    FAIL();
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), troupe::errc::runtime_stopped);
  }
  // Nothing of the other one had to run any more.
  EXPECT_EQ(in.push(1), st::pushed::closed);
  try {
    EXPECT_TRUE(s.wait_for(test::patience));
    FAIL();
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), troupe::errc::runtime_stopped);
  }
}

TEST(stream_life, streams_leave_room_for_tasks_of_the_same_worker) {
  troupe::runtime rt(troupe::options{.threads = 1});
  auto p = st::from("endless", std::views::iota(0)) | st::async() | st::sink("end", [](int) {});
  auto q = st::from("endless", std::views::iota(0)) | st::sink("end", [](int) {});
  auto r = p.start(rt);
  auto s = q.start(rt);
  for (int i = 0; i < 20; ++i) {
    auto f = rt.spawn([i] { return i; });
    ASSERT_TRUE(f.wait_for(test::patience));
    EXPECT_EQ(f.get(), i);
  }
  const auto before = s.report().items.delivered;
  while (s.report().items.delivered == before) std::this_thread::yield();
}

TEST(stream_life, a_stage_may_use_the_runtime) {
  troupe::runtime rt(troupe::options{.threads = 2});
  auto totals = rt.filled<long>({4}, troupe::tiles(1), 0);
  auto p =
      st::from("numbers", std::views::iota(0, 400)) |
      st::map("task", [&](int i) { return rt.spawn([i] { return 2 * i; }).get(); }, {.parallel = 2}) |
      st::sink("add", [&](int i) { rt.spawn([i](troupe::view<long, 1> v) { v(i / 2 % 4) += i; }, update(totals)); });
  p.start(rt).wait();
  rt.wait_all();
  long sum = 0;
  auto v = totals.read();
  for (int i = 0; i < 4; ++i) sum += v(i);
  EXPECT_EQ(sum, 2 * 399 * 200);
}

// ---- coroutines -----------------------------------------------------------------------------------------------------

struct counted {
  explicit counted(std::atomic<int>& n) : alive(&n) { ++n; }
  ~counted() { --*alive; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  std::atomic<int>* alive;
};

st::source<int> ticks(int n, std::chrono::milliseconds every, std::atomic<int>& alive) {
  const counted mark(alive);
  for (int i = 0; i < n; ++i) {
    co_await st::sleep(every);
    co_yield i;
  }
}

TEST(stream_life, a_coroutine_sleeps_without_a_thread) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::atomic<int> alive{0};
  std::vector<int> got;
  auto p = st::from("ticks", ticks(5, 10ms, alive)) | st::sink("keep", [&](int i) { got.push_back(i); });
  const auto begin = std::chrono::steady_clock::now();
  auto r = p.start(rt);
  EXPECT_EQ(rt.spawn([] { return 1; }).get(), 1);
  r.wait();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 50ms);
  EXPECT_EQ(got, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(stream_life, a_coroutine_that_sleeps_is_destroyed_when_the_stream_ends_early) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::atomic<int> alive{0};
  {
    auto p = st::from("ticks", ticks(5, 1h, alive)) | st::sink("end", [](int) {});
    auto r = p.start(rt);
    while (alive == 0) std::this_thread::yield();
    const st::report told = r.drain(test::patience);  // it sleeps for an hour, and is not asked again
    EXPECT_EQ(told.state, st::state::ended);
  }
  rt.wait_all();
  EXPECT_EQ(alive, 0);
}

st::source<std::string> lines_of(int descriptor) {
  std::string rest;
  std::array<char, 64> buffer;
  for (;;) {
    co_await st::readable(descriptor);
    const ssize_t n = ::read(descriptor, buffer.data(), buffer.size());
    if (n <= 0) co_return;
    rest.append(buffer.data(), static_cast<std::size_t>(n));
    for (std::size_t at; (at = rest.find('\n')) != std::string::npos; rest.erase(0, at + 1))
      co_yield rest.substr(0, at);
  }
}

TEST(stream_life, a_coroutine_waits_for_a_descriptor) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  std::vector<std::string> got;
  std::atomic<int> count{0};
  auto p = st::from("lines", lines_of(ends[0])) | st::sink("keep", [&](std::string s) {
             got.push_back(std::move(s));
             ++count;
           });
  auto r = p.start(rt);
  const auto say = [&](const std::string& s) {
    ASSERT_EQ(::write(ends[1], s.data(), s.size()), static_cast<ssize_t>(s.size()));
  };
  say("one\ntwo\nthr");
  while (count < 2) std::this_thread::yield();
  say("ee\n");
  while (count < 3) std::this_thread::yield();
  ::close(ends[1]);
  r.wait();
  ::close(ends[0]);
  EXPECT_EQ(got, (std::vector<std::string>{"one", "two", "three"}));
}

TEST(stream_life, a_descriptor_that_a_source_waits_for_is_closed_when_its_owner_closes_it) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  std::signal(SIGPIPE, SIG_IGN);
  for (const bool drains : {true, false}) {
    auto p = st::merge("all", st::from("lines", lines_of(ends[0])), st::from<std::string>("in")) |
             st::sink("end", [](const std::string&) {});
    auto r = p.start(rt);
    EXPECT_EQ(r.input<std::string>("in").push("x"), st::pushed::ok);
    while (r.report().items.delivered == 0) std::this_thread::yield();
    if (!drains) continue;
    EXPECT_EQ(r.drain(test::patience).state, st::state::ended);
  }
  ::close(ends[0]);
  const auto end = std::chrono::steady_clock::now() + test::patience;
  while (::write(ends[1], "x", 1) == 1 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(errno, EPIPE);
  ::close(ends[1]);
}

TEST(stream_life, a_source_is_not_asked_while_there_is_no_room) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  test::gate go;
  const test::opener last(go);
  std::atomic<int> read{0};
  auto p = st::from("bytes",
                    [](int fd, std::atomic<int>& n) -> st::source<char> {
                      for (char c;;) {
                        co_await st::readable(fd);
                        if (::read(fd, &c, 1) != 1) co_return;
                        ++n;
                        co_yield c;
                      }
                    }(ends[0], read)) |
           st::async({.items = 4}) | st::sink("slow", [&](char) { EXPECT_TRUE(go.pass()); });
  auto r = p.start(rt);
  ASSERT_EQ(::write(ends[1], "0123456789", 10), 10);
  while (r.report().edges[0].items != 4) std::this_thread::yield();
  rt.spawn([] {}).get();  // a worker has been free since
  EXPECT_EQ(read, 4);     // the rest stays in the pipe
  go.open();
  ::close(ends[1]);
  r.wait();
  ::close(ends[0]);
  EXPECT_EQ(r.report().items.delivered, 10u);
}

TEST(stream_life, latencies_are_counted_from_when_items_were_due) {
  troupe::runtime rt(troupe::options{.threads = 1});
  auto p = st::from("late",
                    []() -> st::source<int> {
                      for (int i = 0; i < 100; ++i) co_yield st::due<int>(i, std::chrono::steady_clock::now() - 50ms);
                    }()) |
           st::sink("end", [](int) {});
  auto r = p.start(rt);
  r.wait();
  const st::report told = r.report();
  ASSERT_GT(told.latency.count(), 0u);
  EXPECT_GE(told.latency.quantile(0), 49ms);
  EXPECT_LT(told.latency.quantile(0.5), 50ms + test::patience);
}

TEST(stream_life, streams_that_wait_for_anything_end_with_the_runtime) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  std::atomic<int> alive{0}, tried{0};
  std::optional<troupe::runtime> rt(std::in_place, troupe::options{.threads = 2});
  std::vector<st::running> all;
  all.push_back((st::from<int>("in") | st::sink("end", [](int) {})).start(*rt));
  all.push_back((st::from("ticks", ticks(5, 1h, alive)) | st::sink("end", [](int) {})).start(*rt));
  all.push_back((st::from("lines", lines_of(ends[0])) | st::sink("end", [](const std::string&) {})).start(*rt));
  all.push_back((st::from("one", std::views::iota(0, 1)) |
                 st::map("retried",
                         [&](const int& i) {
                           if (++tried != 0) throw std::runtime_error("never");
                           return i;
                         },
                         {.fail = st::retry(5, 1min)}) |
                 st::sink("end", [](int) {
                 })).start(*rt));
  while (alive == 0 || tried == 0) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  rt.reset();
  for (const st::running& r : all) {
    EXPECT_TRUE(test::ends(r));
    EXPECT_EQ(r.report().state, st::state::failed);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, test::patience);
  all.clear();
  EXPECT_EQ(alive, 0);
  for (const int d : ends) ::close(d);
}

TEST(stream_life, all_that_a_stream_has_is_gone_with_its_handle) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<int> alive{0};
  struct piece {
    explicit piece(std::atomic<int>& n) : count(&n) { ++n; }
    piece(piece&& o) noexcept : count(std::exchange(o.count, nullptr)) {}
    piece& operator=(piece&&) = delete;
    ~piece() {
      if (count) --*count;
    }
    std::atomic<int>* count;
  };
  for (int i = 0; i < 300; ++i) {
    {
      auto p =
          st::from("endless", std::views::iota(0)) |
          st::map("make", [&, own = std::make_shared<piece>(alive)](int) { return piece(alive); }, {.parallel = 2}) |
          st::async() | st::sink("end", [own = std::make_shared<piece>(alive)](const piece&) {});
      auto r = p.start(rt);
      if (i % 3 == 0) std::this_thread::yield();
      if (i % 3 == 1) r.drain(test::patience);
    }
    ASSERT_EQ(alive, 0) << i;
  }
}

// Coroutines whose parameters could be made an item.
st::source<int> counts_from(int first) {
  co_await st::sleep(1us);
  co_yield first + 1;
}
st::source<std::string> says(std::string word) { co_yield word + "!"; }
st::source<int> says_nothing(int) { co_return; }
st::source<int> throws_at_once(int) {
  throw std::runtime_error("at once");
  co_return;
}

TEST(stream_life, parameters_of_a_coroutine_are_no_items) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::vector<int> numbers;
  std::vector<std::string> words;
  (st::from("n", counts_from(5)) | st::sink("keep", [&](int i) { numbers.push_back(i); })).start(rt).wait();
  (st::from("w", says("secret")) | st::sink("keep", [&](std::string s) { words.push_back(s); })).start(rt).wait();
  (st::from("e", says_nothing(7)) | st::sink("keep", [&](int i) { numbers.push_back(i); })).start(rt).wait();
  auto r = (st::from("t", throws_at_once(7)) | st::sink("keep", [&](int i) { numbers.push_back(i); })).start(rt);
  EXPECT_THROW(r.wait(), st::stage_failed);
  EXPECT_EQ(numbers, std::vector<int>{6});
  EXPECT_EQ(words, std::vector<std::string>{"secret!"});
}

TEST(stream_life, functions_that_give_their_core_away_leave_it_to_their_own_stream) {
  troupe::runtime rt(troupe::options{.threads = 1});
  test::gate both;
  std::atomic<int> inside{0};
  auto p = st::from("two", std::views::iota(0, 4)) |
           st::map("wait",
                   [&](int i) {
                     if (++inside == 4) both.open();
                     EXPECT_TRUE(troupe::yield_core([&] { return both.pass(); }));
                     return i;
                   },
                   {.parallel = 4}) |
           st::sink("end", [](int) {});
  p.start(rt).wait();
}

TEST(stream_life, ticks_come_at_their_times_and_late_ones_count_from_when_they_were_due) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::vector<std::uint64_t> got;
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point fifth{};
  auto p = st::from("ticks", st::ticks(std::chrono::milliseconds(10))) | st::sink("keep", [&](std::uint64_t n) {
             got.push_back(n);
             if (n == 5) fifth = std::chrono::steady_clock::now();
             // One that takes as long as five of them.
             const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(n == 10 ? 50 : 0);
             while (std::chrono::steady_clock::now() < until) {
             }
           });
  auto r = p.start(rt);
  ASSERT_TRUE(test::comes_true([&] { return r.report().items.delivered >= 20; }));
  const st::report told = r.drain(test::patience);
  EXPECT_GE(fifth - begin, std::chrono::milliseconds(50));
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i);
  EXPECT_GE(told.latency.max(), std::chrono::milliseconds(30));  // what came behind the tenth waited for it
  EXPECT_THROW(static_cast<void>(st::ticks(std::chrono::nanoseconds(0))), troupe::error);
}

TEST(stream_life, functions_that_take_long_are_told_when_the_stream_has_ended) {
  troupe::runtime rt(troupe::options{.threads = 2});
  test::gate begun;
  std::atomic<bool> told{false};
  {
    auto p = st::from("one", std::vector<int>{1}) | st::sink("long", [&](int) {
               EXPECT_FALSE(troupe::this_task::stop_requested());
               begun.open();
               while (!troupe::this_task::stop_requested()) std::this_thread::yield();
               told = true;
             });
    auto r = p.start(rt);
    ASSERT_TRUE(begun.pass());
    r.cancel();
  }
  EXPECT_TRUE(told);
}

TEST(stream_life, handles_that_were_moved_from_say_so) {
  troupe::runtime rt(troupe::options{.threads = 1});
  auto p = st::from<int>("in") | st::sink("end", [](int) {});
  auto q = std::move(p);
  EXPECT_THROW(static_cast<void>(p.start(rt)), troupe::error);  // NOLINT: on purpose
  auto r = q.start(rt);
  auto in = r.input<int>("in");
  const auto s = std::move(r);
  EXPECT_THROW(static_cast<void>(r.report()), troupe::error);
  EXPECT_THROW(r.wait(), troupe::error);
  EXPECT_THROW(static_cast<void>(r.wait_for(std::chrono::seconds(0))), troupe::error);
  EXPECT_THROW(static_cast<void>(r.drain(std::chrono::seconds(0))), troupe::error);
  EXPECT_THROW(static_cast<void>(r.barrier(std::chrono::seconds(0))), troupe::error);
  EXPECT_THROW(static_cast<void>(r.input<int>("in")), troupe::error);
  r.cancel();
  auto other = std::move(in);
  EXPECT_THROW(static_cast<void>(in.push(1)), troupe::error);
  EXPECT_THROW(in.close(), troupe::error);
  EXPECT_EQ(other.push(1), st::pushed::ok);
}

}  // namespace
