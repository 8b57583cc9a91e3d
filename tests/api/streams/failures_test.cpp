// What this file is for: what a stream does when the function of a stage throws, and with calls that are wrong.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"

namespace {

namespace st = troupe::stream;
using test::expect_balanced;

int poison_at_7(const int& i) {
  if (i == 7) throw std::runtime_error("seven");
  return i;
}

TEST(stream_failures, a_function_that_throws_fails_the_stream_with_stage_item_and_attempts) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::vector<int> got;
  auto p = st::from("numbers", std::views::iota(0, 100)) | st::map("check", poison_at_7, {.fail = st::retry(2)}) |
           st::sink("keep", [&](int i) { got.push_back(i); });
  auto r = p.start(rt, {.name = "mine"});
  try {
    r.wait();
    FAIL();
  } catch (const st::stage_failed& e) {
    EXPECT_EQ(e.stage(), "check");
    EXPECT_EQ(e.item(), 7u);
    EXPECT_EQ(e.attempts(), 3);
    EXPECT_EQ(e.code(), troupe::errc::task_failed);
    EXPECT_EQ(std::string(e.what()), "stream 'mine': stage 'check' failed on item 7 in 3 attempts: seven");
    EXPECT_THROW(std::rethrow_exception(e.cause()), std::runtime_error);
  }
  EXPECT_EQ(got.size(), 7u);
  const st::report told = r.report();
  EXPECT_EQ(told.state, st::state::failed);
  EXPECT_TRUE(told.error);
  EXPECT_EQ(told.stages[1].retries, 2u);
  EXPECT_EQ(told.items.in_flight, 1u);
  expect_balanced(told);
}

TEST(stream_failures, a_retry_that_goes_well_loses_nothing_and_keeps_the_order) {
  troupe::runtime rt(troupe::options{.threads = 4});
  for (const int lanes : {1, 3}) {
    std::mutex lock;
    std::map<int, int> tried;
    std::vector<int> got;
    auto p = st::from("numbers", std::views::iota(0, 300)) |
             st::map("flaky",
                     [&](const int& i) {
                       const std::lock_guard hold(lock);
                       if (i % 10 == 3 && ++tried[i] < 3) throw std::runtime_error("not yet");
                       return i;
                     },
                     {.parallel = lanes, .fail = st::retry(3, std::chrono::microseconds(200))}) |
             st::sink("keep", [&](int i) { got.push_back(i); });
    auto r = p.start(rt);
    r.wait();
    std::vector<int> wanted(300);
    std::iota(wanted.begin(), wanted.end(), 0);
    EXPECT_EQ(got, wanted) << lanes;
    EXPECT_EQ(r.report().stages[1].retries, 60u);
    expect_balanced(r.report());
  }
}

TEST(stream_failures, a_pause_before_a_retry_holds_no_worker) {
  troupe::runtime rt(troupe::options{.threads = 1});
  std::atomic<int> tried{0};
  auto p = st::from("one", std::views::iota(0, 1)) |
           st::map("flaky",
                   [&](const int& i) {
                     if (++tried == 1) throw std::runtime_error("not yet");
                     return i;
                   },
                   {.fail = st::retry(1, std::chrono::milliseconds(200))}) |
           st::sink("end", [](int) {});
  auto r = p.start(rt);
  const auto begin = std::chrono::steady_clock::now();
  while (tried == 0) std::this_thread::yield();
  // The only worker runs this meanwhile.
  EXPECT_EQ(rt.spawn([&] { return tried.load(); }).get(), 1);
  r.wait();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
}

TEST(stream_failures, dead_letters_have_item_stage_error_and_attempts) {
  troupe::runtime rt(troupe::options{.threads = 3});
  for (const int lanes : {1, 3}) {
    std::mutex lock;
    std::vector<std::string> dead;
    std::vector<std::string> got;
    std::vector<std::string> words;
    for (int i = 0; i < 100; ++i) words.push_back("w" + std::to_string(i));
    auto p = st::from("words", words) |
             st::map("check",
                     [](const std::string& s) {
                       if (s.back() == '5') throw std::invalid_argument("five");
                       return s;
                     },
                     {.parallel = lanes, .fail = st::retry(1).then(st::dead_letter)}) |
             st::sink("keep", [&](std::string s) { got.push_back(std::move(s)); });
    auto r = p.start(rt, {.on_dead_letter = [&](const st::letter& l) {
                       const std::lock_guard hold(lock);
                       ASSERT_TRUE(l.as<std::string>());
                       EXPECT_FALSE(l.as<int>());
                       EXPECT_EQ(l.stage, "check");
                       EXPECT_EQ(l.attempts, 2);
                       EXPECT_EQ("w" + std::to_string(l.number), *l.as<std::string>());
                       EXPECT_THROW(std::rethrow_exception(l.error), std::invalid_argument);
                       dead.push_back(*l.as<std::string>());
                     }});
    r.wait();
    EXPECT_EQ(dead.size(), 10u);
    EXPECT_EQ(got.size(), 90u);
    EXPECT_EQ(r.report().items.dead, 10u);
    expect_balanced(r.report());
  }
}

TEST(stream_failures, a_stage_may_drop_what_it_fails_on) {
  troupe::runtime rt(troupe::options{.threads = 2});
  long sum = 0;
  auto p = st::from("numbers", std::views::iota(0, 20)) |
           st::map("check", [](int i) { return poison_at_7(i); }, {.fail = st::drop}) |
           st::sink("sum",
                    [&](int i) {
                      if (i == 9) throw std::runtime_error("nine");
                      sum += i;
                    },
                    {.fail = st::drop});
  auto r = p.start(rt);
  r.wait();
  EXPECT_EQ(sum, 190 - 7 - 9);
  EXPECT_EQ(r.report().items.dropped, 2u);
  EXPECT_EQ(r.report().items.delivered, 18u);
  expect_balanced(r.report());
}

TEST(stream_failures, every_kind_of_stage_may_throw) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const auto fails = [&](st::pipeline p, const std::string& stage) {
    auto r = p.start(rt);
    try {
      r.wait();
      ADD_FAILURE() << stage << " did not fail";
    } catch (const st::stage_failed& e) {
      EXPECT_EQ(e.stage(), stage);
    }
    expect_balanced(r.report());
  };
  const auto numbers = [] { return st::from("numbers", std::views::iota(0, 20)); };
  const auto end = [](const auto& f) { return f | st::sink("end", [](const auto&) {}); };
  fails(end(numbers() | st::filter("filter", [](int i) { return poison_at_7(i) >= 0; })), "filter");
  fails(end(numbers() | st::flat_map("call", [](int i) { return std::vector<int>{poison_at_7(i)}; })), "call");
  fails(end(numbers() | st::flat_map("range",
                                     [](int i) {
                                       return std::views::iota(0, i) |
                                              std::views::transform([](int k) { return poison_at_7(k); });
                                     })),
        "range");
  fails(end(numbers() | st::scan("scan", 0, [](int& s, int i) { return s += poison_at_7(i); })), "scan");
  auto ways = numbers() | st::route<1>("route", [](int i) { return static_cast<std::size_t>(poison_at_7(i)); });
  fails(end(ways[0]), "route");
  fails(numbers() | st::sink("sink", [](int i) { poison_at_7(i); }), "sink");
  fails(end(st::from("source", [i = 0]() mutable -> std::optional<int> { return poison_at_7(i++); })), "source");
}

TEST(stream_failures, an_item_that_cannot_be_copied_after_all_fails_the_tee) {
  struct fragile {
    int n = 0;
    explicit fragile(int i) : n(i) {}
    fragile(const fragile& o) : n(o.n) {
      if (n == 5) throw std::runtime_error("no copy");
    }
    fragile(fragile&&) noexcept = default;
    fragile& operator=(fragile&&) noexcept = default;
  };
  troupe::runtime rt(troupe::options{.threads = 1});
  auto [a, b] = st::from("numbers", std::views::iota(0, 10)) | st::map("make", [](int i) { return fragile(i); }) |
                st::tee<2>("tee");
  auto p = (a | st::sink("a", [](const fragile&) {})) + (b | st::sink("b", [](const fragile&) {}));
  auto r = p.start(rt);
  try {
    r.wait();
    FAIL();
  } catch (const st::stage_failed& e) {
    EXPECT_EQ(e.stage(), "tee");
    EXPECT_EQ(e.item(), 5u);
  }
  expect_balanced(r.report());
}

// Lanes that keep the order wait for the places of others, which may be given up.
TEST(stream_failures, parallel_stages_behind_each_other_that_drop_items_under_tight_bounds_go_on) {
  for (int round = 0; round < 40; ++round)
    for (const int threads : {2, 6}) {
      troupe::runtime rt(troupe::options{.threads = threads});
      std::atomic<int> got{0};
      auto p = st::from("numbers", std::views::iota(0, 500)) |
               st::map("drops",
                       [](const int& i) {
                         if (i % 7 == 3) throw std::runtime_error("no");
                         return i;
                       },
                       {.parallel = 5, .fail = st::drop, .edge = {.items = 8}}) |
               st::map("next", [](int i) { return i; }, {.parallel = 5, .edge = {.bytes = 1}}) |
               st::map("last", [](int i) { return i; }, {.parallel = 3, .edge = {.items = 3}}) |
               st::sink("end", [&](int) { ++got; });
      auto r = p.start(rt);
      ASSERT_TRUE(r.wait_for(test::patience)) << r.report().text();
      ASSERT_EQ(got, 429);
      expect_balanced(r.report());
    }
}

TEST(stream_failures, a_range_that_throws_may_be_a_dead_letter_without_its_item) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::vector<int> got;
  int dead = 0;
  auto p = st::from("numbers", std::vector<int>{3, 9, 2}) |
           st::flat_map("range",
                        [](const int& n) {
                          return std::views::iota(0, n) | std::views::transform([](int k) { return poison_at_7(k); });
                        },
                        {.fail = st::dead_letter}) |
           st::sink("keep", [&](int i) { got.push_back(i); });
  auto r = p.start(rt, {.on_dead_letter = [&](const st::letter& l) {
                     EXPECT_FALSE(l.as<int>());
                     EXPECT_EQ(l.number, 1u);
                     ++dead;
                   }});
  r.wait();
  EXPECT_EQ(got, (std::vector<int>{0, 1, 2, 0, 1, 2, 3, 4, 5, 6, 0, 1}));
  EXPECT_EQ(dead, 1);
  expect_balanced(r.report());
}

TEST(stream_failures, a_handler_of_dead_letters_that_throws_fails_the_stream) {
  troupe::runtime rt(troupe::options{.threads = 2});
  auto p = st::from("numbers", std::views::iota(0, 20)) | st::map("check", poison_at_7, {.fail = st::dead_letter}) |
           st::sink("end", [](int) {});
  auto r = p.start(rt, {.on_dead_letter = [](const st::letter&) { throw std::runtime_error("full"); }});
  EXPECT_THROW(r.wait(), st::stage_failed);
}

void expect_refused(const std::function<void()>& f, const std::string& word) {
  try {
    f();
    ADD_FAILURE() << "not refused: " << word;
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), troupe::errc::bad_argument) << e.what();
    EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
  }
}

TEST(stream_failures, wrong_calls_are_refused_with_the_name_of_the_stage) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const auto numbers = [] { return st::from("numbers", std::views::iota(0, 20)); };
  const auto same = [](int i) { return i; };
  const auto end = [](int) {};
  const auto start = [&](st::pipeline p) {
    auto r = p.start(rt);
    r.wait();
  };
  expect_refused([&] { start(numbers() | st::map("m", same, {.parallel = 0}) | st::sink("s", end)); }, "'m'");
  expect_refused([&] { start(numbers() | st::map("m", same, {.parallel = -1}) | st::sink("s", end)); }, "'m'");
  expect_refused([&] { start(numbers() | st::map("m", same, {.parallel = 1025}) | st::sink("s", end)); }, "'m'");
  expect_refused([&] { start(numbers() | st::async({.items = 0}) | st::sink("s", end)); }, "'s'");
  expect_refused([&] { start(numbers() | st::async({.bytes = 0}) | st::sink("s", end)); }, "'s'");
  expect_refused([&] { start(numbers() | st::async({.items = (1u << 24) + 1}) | st::sink("s", end)); }, "'s'");
  expect_refused([&] { start(numbers() | st::map("m", same) | st::sink("m", end)); }, "'m'");
  expect_refused([&] { start(numbers() | st::map("", same) | st::sink("m", end)); }, "no name");
  expect_refused([&] { start(numbers() | st::map("m", same, {.fail = st::retry(-1)}) | st::sink("s", end)); }, "'m'");
  expect_refused(
      [&] {
        start(numbers() | st::map("m", same, {.fail = st::retry(1, std::chrono::seconds(-1))}) | st::sink("s", end));
      },
      "'m'");
  expect_refused([&] { start(numbers() | st::batch("b", {.items = 0}) | st::sink("s", [](const auto&) {})); }, "'b'");
  expect_refused(
      [&] {
        start(numbers() | st::scan("c", 0, [](int& s, int i) { return s += i; }, {.parallel = 2}) | st::sink("s", end));
      },
      "'c'");
  expect_refused([&] { start(numbers() | st::sink("s", end, {.parallel = 2})); }, "'s'");
  expect_refused(
      [&] {
        auto moves = numbers() | st::map("box", [](int i) { return std::make_unique<int>(i); }) |
                     st::map("m", [](std::unique_ptr<int>&& p) { return p; }, {.fail = st::dead_letter}) |
                     st::sink("s", [](const auto&) {});
        start(std::move(moves));
      },
      "'m'");
  expect_refused(
      [&] { start(numbers() | st::filter("f", [](int) { return true; }, {.parallel = 2}) | st::sink("s", end)); },
      "'f'");
  expect_refused(
      [&] {
        start(numbers() | st::flat_map("f", [](int) { return std::vector<int>(); }, {.parallel = 0}) |
              st::sink("s", end));
      },
      "'f'");
  expect_refused(
      [&] {
        start(numbers() | st::batch("b", {.delay = std::chrono::seconds(-1)}) | st::sink("s", [](const auto&) {}));
      },
      "'b'");
  expect_refused([&] { start(numbers() | st::async() | st::async() | st::sink("s", end)); }, "'numbers'");
  expect_refused([&] { static_cast<void>(st::from<int>("in", {.items = 0})); }, "'in'");
  expect_refused(
      [&] {
        auto [a, b] = numbers() | st::tee<2>("t");
        start(a | st::sink("s", end));
      },
      "goes nowhere");
  expect_refused(
      [&] {
        auto n = numbers();
        static_cast<void>(n | st::sink("s", end));
        static_cast<void>(n | st::sink("z", end));
      },
      "use tee");
  auto once = numbers() | st::sink("s", end);
  start(once);
  expect_refused([&] { start(once); }, "started already");
}

}  // namespace
