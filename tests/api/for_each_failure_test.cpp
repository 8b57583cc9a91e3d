// What this file is for: what a for_each ends with when chunks fail: with the first failure, as the chunk itself would.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::error_of;

using ints = view<int, 1>;

TEST(for_each_failure, is_the_failure_of_the_chunk_and_not_poison) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<int>({8}, tiles(2), 1, "a");
  const auto all = rt.for_each(
      {.name = "halve"}, grid(8),
      [](ints v) {
        if (v.lo(0) == 4) throw std::runtime_error("odd");
      },
      update(a));
  const auto e = error_of([&] { all.get(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::task_failed);
  EXPECT_EQ(e->task, "halve");
  EXPECT_EQ(e->root, "halve");
  EXPECT_EQ(e->executor, "cpu:0");
  EXPECT_EQ(e->attempts, 1);
  EXPECT_EQ(e->cause_text(), "odd");
  EXPECT_TRUE(e->says("odd")) << e->text;
}

TEST(for_each_failure, of_a_kernel_on_a_device_is_the_failure_of_the_chunk) {
  options o{.threads = 1};
  o.cost_cache = "none";
  o.devices.push_back({"sim:0"});
  runtime rt(o);
  static constexpr auto bad = kernel<inout<int, 1>>("bad").on(
      sim, routine<[](device_call&, view<int, 1>) { throw std::runtime_error("no"); }>);
  auto a = rt.filled<int>({8}, tiles(2), 1, "a");
  const auto e = error_of([&] { rt.for_each(grid(8), bad, update(a)).get(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::task_failed);
  EXPECT_EQ(e->task, "bad");
  EXPECT_EQ(e->executor, "sim:0");
}

// As the call of one chunk would fail, whatever the reason.
template <class Make>
void expect_same_code(Make&& make) {
  runtime rt(options{.threads = 1, .memory_bytes = 1 << 20});
  const auto one = error_of([&] { make(rt, true).get(); });
  const auto all = error_of([&] { make(rt, false).get(); });
  ASSERT_TRUE(one && all);
  EXPECT_EQ(one->code, all->code) << one->text << "\n" << all->text;
  EXPECT_NE(all->code, errc::dependency_failed);
  EXPECT_EQ(one->cause_text(), all->cause_text());
}

TEST(for_each_failure, for_want_of_memory_is_what_one_call_ends_with) {
  // Nothing can leave: the array that is there is in use by its handle.
  expect_same_code([](runtime& rt, bool one) {
    static std::optional<array<int, 1>> kept;
    kept = rt.array<int>({200'000}, tiles(200'000), "kept");
    rt.spawn([](ints v) { v(0) = 1; }, write(*kept)).get();
    auto more = rt.array<int>({200'000}, tiles(100'000), "more");
    const auto body = [](ints v) { v(v.lo(0)) = 1; };
    if (!one) return rt.for_each(grid(200'000), body, write(more));
    return rt.spawn(body, write(more.sub({{0}, {100'000}})));
  });
}

TEST(for_each_failure, of_what_was_never_written_is_what_one_call_ends_with) {
  expect_same_code([](runtime& rt, bool one) {
    auto a = rt.array<int>({8}, tiles(2), "a");
    const auto body = [](view<const int, 1>) {};
    return one ? rt.spawn(body, read(a)) : rt.for_each(grid(8), body, read(a));
  });
}

TEST(for_each_failure, by_a_stop_is_cancelled) {
  runtime rt(options{.threads = 1});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(code_of([&] { rt.for_each({.stop = stop.get_token()}, grid(8).chunks(2), [] {}).get(); }),
            errc::cancelled);
}

TEST(for_each_failure, that_came_from_before_it_is_poison) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<int>({8}, tiles(2), 1, "a");
  rt.spawn({.name = "first"}, [](ints) { throw std::runtime_error("no"); }, update(a));
  const auto e = error_of([&] { rt.for_each(grid(8), [](ints) {}, update(a)).get(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::dependency_failed);
  EXPECT_EQ(e->root, "first");
}

TEST(for_each_failure, poisons_what_comes_after_it) {
  runtime rt(options{.threads = 1});
  const auto all = rt.for_each({.name = "chunks"}, grid(8).chunks(2), [] { throw std::runtime_error("no"); });
  const auto e = error_of([&] { rt.spawn([] {}, all).get(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::dependency_failed);
  EXPECT_EQ(e->root, "chunks");
}

}  // namespace
