// What this file is for: coroutines that push into streams, and wait for room without a thread.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
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

// A coroutine that runs by itself.
struct loose {
  struct promise_type {
    loose get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

st::source<int> passes_on(int count, st::input<int> to, st::pushed* answer) {
  for (int i = 0; i < count; ++i) {
    *answer = co_await to.push_async(i);
    if (*answer != st::pushed::ok) co_return;
    co_yield i;
  }
}

TEST(stream_push_async, a_source_waits_for_room_in_another_stream_without_a_thread) {
  troupe::runtime rt(troupe::options{.threads = 1});  // were a thread to wait, nothing else would run
  std::vector<int> got, passed;
  auto second = st::from<int>("in", {.items = 2}) | st::sink("end", [&](int i) { got.push_back(i); });
  auto b = second.start(rt, {.name = "second"});
  st::pushed answer{};
  auto first = st::from("numbers", passes_on(5000, b.input<int>("in"), &answer)) |
               st::sink("end", [&](int i) { passed.push_back(i); });
  auto a = first.start(rt, {.name = "first"});
  ASSERT_TRUE(a.wait_for(test::patience));
  EXPECT_EQ(answer, st::pushed::ok);
  b.input<int>("in").close();
  ASSERT_TRUE(b.wait_for(test::patience));
  std::vector<int> wanted(5000);
  std::iota(wanted.begin(), wanted.end(), 0);
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(passed, wanted);
  EXPECT_LE(b.report().edges.front().items_max, 2u);
  expect_balanced(a.report());
  expect_balanced(b.report());
}

TEST(stream_push_async, a_source_is_told_that_the_other_stream_has_ended) {
  troupe::runtime rt(troupe::options{.threads = 2});
  test::gate holds;
  auto second = st::from<int>("in", {.items = 2}) | st::sink("end", [&](int) { EXPECT_TRUE(holds.pass()); });
  auto b = second.start(rt);
  st::pushed answer = st::pushed::ok;
  auto first = st::from("numbers", passes_on(100, b.input<int>("in"), &answer)) | st::sink("end", [](int) {});
  auto a = first.start(rt);
  ASSERT_TRUE(test::comes_true([&] { return b.report().items.pushed == 2; }));
  b.cancel();
  holds.open();
  ASSERT_TRUE(a.wait_for(test::patience));
  EXPECT_EQ(answer, st::pushed::closed);
}

TEST(stream_push_async, a_stream_that_goes_while_its_source_waits_leaves_the_other_one_as_it_was) {
  troupe::runtime rt(troupe::options{.threads = 2});
  for (int round = 0; round < 50; ++round) {
    test::gate holds;
    std::atomic<int> got{0};
    auto second = st::from<int>("in", {.items = 2}) | st::sink("end", [&](int) {
                    EXPECT_TRUE(holds.pass());
                    ++got;
                  });
    auto b = second.start(rt);
    st::pushed answer{};
    {
      auto first = st::from("numbers", passes_on(100, b.input<int>("in"), &answer)) | st::sink("end", [](int) {});
      auto a = first.start(rt);
      ASSERT_TRUE(test::comes_true([&] { return b.report().items.pushed == 2; }));
      if (round % 2 == 1) holds.open();  // room may come while it goes
    }
    holds.open();
    auto in = b.input<int>("in");
    ASSERT_EQ(in.push(1000), st::pushed::ok);
    in.close();
    ASSERT_TRUE(b.wait_for(test::patience));
    EXPECT_EQ(b.report().items.delivered, static_cast<std::uint64_t>(got));
    expect_balanced(b.report());
  }
}

loose push_all(int count, st::input<int> to, std::atomic<int>* done, std::atomic<int>* closed) {
  for (int i = 0; i < count; ++i)
    if (co_await to.push_async(i) != st::pushed::ok) {
      ++*closed;
      break;
    }
  ++*done;
}

TEST(stream_push_async, any_coroutine_is_resumed_when_there_is_room) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::uint64_t sum = 0;
  auto p = st::from<int>("in", {.items = 3}) | st::sink("end", [&](int i) { sum += static_cast<std::uint64_t>(i); });
  auto r = p.start(rt);
  std::atomic<int> done{0}, closed{0};
  constexpr int many = 8, count = 2000;
  for (int i = 0; i < many; ++i) push_all(count, r.input<int>("in"), &done, &closed);
  ASSERT_TRUE(test::comes_true([&] { return done == many; }));
  r.input<int>("in").close();
  ASSERT_TRUE(r.wait_for(test::patience));
  EXPECT_EQ(closed, 0);
  EXPECT_EQ(sum, many * (count * (count - 1ull) / 2));
  EXPECT_LE(r.report().edges.front().items_max, 3u);
  expect_balanced(r.report());
}

TEST(stream_push_async, any_coroutine_is_resumed_when_the_stream_or_the_runtime_goes) {
  for (int round = 0; round < 20; ++round) {
    std::optional<troupe::runtime> rt(std::in_place, troupe::options{.threads = 2});
    test::gate holds;
    auto p = st::from<int>("in", {.items = 3}) | st::sink("end", [&](int) { EXPECT_TRUE(holds.pass()); });
    auto r = std::make_optional(p.start(*rt));
    std::atomic<int> done{0}, closed{0};
    for (int i = 0; i < 4; ++i) push_all(10, r->input<int>("in"), &done, &closed);
    ASSERT_TRUE(test::comes_true([&] { return r->report().items.pushed == 3; }));
    std::jthread opens([&] { holds.open(); });  // while it waits for the function that runs
    if (round % 2 == 0)
      r.reset();
    else
      rt.reset();
    ASSERT_TRUE(test::comes_true([&] { return done == 4; }));
  }
}

TEST(stream_push_async, an_edge_that_is_to_fail_throws_in_the_coroutine) {
  troupe::runtime rt(troupe::options{.threads = 2});
  test::gate holds;
  auto p = st::from<int>("in", {.items = 1, .full = st::when_full::fail}) |
           st::sink("end", [&](int) { EXPECT_TRUE(holds.pass()); });
  auto r = p.start(rt);
  std::atomic<int> code{0};
  [](st::input<int> to, std::atomic<int>* code_to) -> loose {
    try {
      for (int i = 0; i < 100; ++i) static_cast<void>(co_await to.push_async(i));
    } catch (const troupe::error& e) {
      *code_to = static_cast<int>(e.code());
    }
  }(r.input<int>("in"), &code);
  EXPECT_TRUE(test::comes_true([&] { return code == static_cast<int>(troupe::errc::overrun); }));
  holds.open();
}

}  // namespace
