// What this file is for: what a for_each ends with when chunks fail: with the first failure, as the chunk itself would.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
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

// A for_each over eight elements, of which the first chunk stays at a gate.
struct first_is_held {
  std::shared_ptr<test::gate> go = std::make_shared<test::gate>(), begun = std::make_shared<test::gate>();
  std::shared_ptr<std::atomic<int>> ended = std::make_shared<std::atomic<int>>(0);
  auto body(index_t throws_at) const {
    return [*this, throws_at](ints v) {
      if (v.lo(0) == throws_at) {
        EXPECT_TRUE(begun->pass());
        throw std::runtime_error("odd");
      }
      if (v.lo(0) == 0) {
        begun->open();
        (void)go->pass();
      }
      ++*ended;
    };
  }
};

TEST(for_each_failure, is_told_when_all_chunks_have_ended) {
  for (const bool known : {false, true}) {
    first_is_held h;
    const test::opener at_the_end(*h.go);
    runtime rt(options{.threads = 2});
    auto a = rt.filled<int>({8}, tiles(1), 1, "a");
    if (known) {
      const first_is_held before;
      before.go->open();
      for (int i = 0; i < 4; ++i) rt.for_each(grid(8), before.body(-1), update(a)).get();
    }
    const auto all = rt.for_each(grid(8), h.body(5), update(a));
    EXPECT_EQ(code_of([&] { (void)a.sub({{5}, {6}}).read(); }), errc::dependency_failed) << "that chunk has ended";
    EXPECT_FALSE(all.is_ready()) << "the first one runs";
    h.go->open();
    const auto e = error_of([&] { all.get(); });
    ASSERT_TRUE(e);
    EXPECT_EQ(e->cause_text(), "odd");
    EXPECT_EQ(*h.ended, 7);
    const auto at = rt.explain(all).chunks_at;
    ASSERT_EQ(at.size(), 1u);
    EXPECT_EQ(at[0].chunks, 8u);
  }
}

TEST(for_each_failure, of_a_stopped_one_is_told_when_the_chunks_that_run_have_ended) {
  first_is_held h;
  const test::opener at_the_end(*h.go);
  test::gate other, other_runs;
  const test::opener then(other);
  runtime rt(options{.threads = 2});
  auto a = rt.filled<int>({8}, tiles(1), 1, "a");
  rt.spawn([&] {  // has the other thread until the stop
    other_runs.open();
    EXPECT_TRUE(other.pass());
  });
  ASSERT_TRUE(other_runs.pass());
  std::stop_source stops;
  const auto all = rt.for_each({.stop = stops.get_token()}, grid(8), h.body(-1), update(a));
  ASSERT_TRUE(h.begun->pass());
  stops.request_stop();
  other.open();
  EXPECT_TRUE(error_of([&] { (void)a.sub({{7}, {8}}).read(); }));
  EXPECT_FALSE(all.is_ready());
  h.go->open();
  EXPECT_EQ(code_of([&] { all.get(); }), errc::cancelled);
  EXPECT_EQ(*h.ended, 1);
  const auto at = rt.explain(all).chunks_at;
  ASSERT_EQ(at.size(), 1u);
  EXPECT_EQ(at[0].chunks, 1u) << "the others have not run";
}

TEST(for_each_failure, is_told_by_a_shutdown_that_leaves_a_chunk_behind) {
  first_is_held h;
  const test::opener at_the_end(*h.go);
  future<void> all;
  {
    runtime rt(options{.threads = 2, .shutdown_timeout = std::chrono::milliseconds(10)});
    auto a = rt.filled<int>({8}, tiles(1), 1, "a");
    all = rt.for_each(grid(8), h.body(5), update(a));
    EXPECT_TRUE(error_of([&] { (void)a.sub({{5}, {6}}).read(); }));
    EXPECT_FALSE(all.is_ready());
  }
  ASSERT_TRUE(all.is_ready());
  EXPECT_TRUE(error_of([&] { all.get(); }));
}

TEST(for_each_failure, of_a_kernel_on_a_device_is_the_failure_of_the_chunk) {
  options o{.threads = 1};
  o.cost_cache = "none";
  o.devices.push_back({"sim:0"});
  runtime rt(o);
  static constexpr auto bad =
      kernel<inout<int, 1>>("bad").on(sim, routine<[](device_call&, view<int, 1>) { throw std::runtime_error("no"); }>);
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
  EXPECT_EQ(code_of([&] { rt.for_each({.stop = stop.get_token()}, grid(8).chunks(2), [] {}).get(); }), errc::cancelled);
}

TEST(for_each_failure, that_came_from_before_it_is_poison) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<int>({8}, tiles(2), 1, "a");
  rt.spawn(
      {.name = "first"}, [](ints) { throw std::runtime_error("no"); }, update(a));
  const auto e = error_of([&] {
    rt.for_each(
          grid(8), [](ints) {}, update(a))
        .get();
  });
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
