// What this file is for: when borrowed memory is the caller's again: after the last handle, after wait_all.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"
#include "word_kernels.hpp"

namespace {

using namespace troupe;
using test::stir;
using test::word;

constexpr index_t length = 1 << 16, tile = 1 << 13;
constexpr int rounds = 20;

options with_sims(int count) {
  options o;
  o.threads = 2;
  o.cost_cache = "none";
  for (int i = 0; i < count; ++i) o.devices.push_back({"sim:" + std::to_string(i)});
  return o;
}
task_options on(const std::string& name) { return {.where = scope::executor(name)}; }

array<word, 1> borrow(runtime& rt, std::vector<word>& memory) {
  return rt.borrow(std::span(memory), {static_cast<index_t>(memory.size())}, tiles(tile), "mine");
}
word stirred(word a, word factor, index_t i) { return a * factor + static_cast<word>(i); }
void expect_stirred(const std::vector<word>& memory, word from, word factor) {
  for (std::size_t i = 0; i < memory.size(); ++i)
    ASSERT_EQ(memory[i], stirred(from, factor, static_cast<index_t>(i))) << i;
}
// The caller's own use of the memory must stay: whatever still comes in would be seen.
void expect_untouched(runtime& rt, std::vector<word>& memory) {
  std::fill(memory.begin(), memory.end(), 4711u);
  rt.wait_all();
  rt.report();
  EXPECT_EQ(std::count(memory.begin(), memory.end(), 4711u), static_cast<long>(memory.size()));
}

TEST(borrowed, memory_is_the_callers_again_once_the_last_handle_has_gone) {
  runtime rt(with_sims(1));
  std::vector<word> mine(length);
  for (int i = 0; i < rounds; ++i) {
    std::fill(mine.begin(), mine.end(), 7u);
    auto a = borrow(rt, mine);
    rt.for_each(on("sim:0"), grid(length), stir, update(a), word{3});
    rt.wait_all();
    a = {};
    expect_stirred(mine, 7, 3);
    expect_untouched(rt, mine);
  }
}

TEST(borrowed, memory_is_the_callers_again_though_tasks_were_under_way_when_the_last_handle_went) {
  runtime rt(with_sims(2));
  std::vector<word> mine(length);
  for (int i = 0; i < rounds; ++i) {
    std::fill(mine.begin(), mine.end(), 7u);
    {
      const auto a = borrow(rt, mine);
      rt.for_each(on("sim:0"), grid(length), stir, update(a), word{3});
      rt.for_each(on("sim:1"), grid(length), stir, update(a), word{5});
      rt.for_each(on("cpu:0"), grid(length), stir, update(a), word{1});
    }
    for (std::size_t k = 0; k < mine.size(); ++k) {
      const auto at = static_cast<index_t>(k);
      ASSERT_EQ(mine[k], stirred(stirred(stirred(7, 3, at), 5, at), 1, at)) << k;
    }
    expect_untouched(rt, mine);
  }
}

TEST(borrowed, memory_of_tasks_that_only_read_it_is_not_looked_at_after_the_last_handle) {
  runtime rt(options{.threads = 1});
  test::gate begun;
  std::vector<word> mine(length, 7);
  future<word> sum;
  {
    const auto a = borrow(rt, mine);
    sum = rt.spawn(
        [&](view<const word, 1> v) {
          begun.open();
          word s = 0;
          for (int again = 0; again < 50; ++again)
            for (index_t i = 0; i < length; ++i) s += v(i);
          return s;
        },
        read(a));
    ASSERT_TRUE(begun.pass());
  }
  EXPECT_TRUE(sum.is_ready());
}

TEST(borrowed, memory_is_the_callers_again_after_wait_all_where_a_task_had_captured_the_last_handle) {
  runtime rt(with_sims(1));
  std::vector<word> mine(length);
  for (int i = 0; i < rounds; ++i) {
    std::fill(mine.begin(), mine.end(), 7u);
    auto a = borrow(rt, mine);
    rt.for_each(on("sim:0"), grid(length), stir, update(a), word{3});
    auto kept = rt.spawn([a](view<const word, 1>) {}, read(a.sub({{0}, {1}})));
    a = {};
    rt.wait_all();
    expect_stirred(mine, 7, 3);
    expect_untouched(rt, mine);
  }
}

TEST(borrowed, memory_is_the_callers_again_after_wait_all_where_a_graph_or_a_result_had_the_last_handle) {
  runtime rt(with_sims(1));
  std::vector<word> mine(length, 7), other(length, 7);
  {
    graph g;
    {
      const auto a = rt.borrow(std::span(mine), {length}, tiles(length), "mine");
      g = rt.record([&](recorder& r) { r.spawn(on("sim:0"), stir, update(a), word{3}); });
    }
    rt.run(g).get();
    auto result = rt.spawn([&] { return borrow(rt, other); });
    rt.for_each(on("sim:0"), grid(length), stir, update(result.get()), word{3});
  }
  rt.wait_all();
  expect_stirred(mine, 7, 3);
  expect_stirred(other, 7, 3);
  expect_untouched(rt, mine);
  expect_untouched(rt, other);
}

TEST(borrowed, memory_of_a_task_is_its_own_again_when_its_handle_goes) {
  runtime rt(with_sims(1));
  const auto right = rt.spawn([&] {
    std::vector<word> mine(length, 7);
    {
      const auto a = borrow(rt, mine);
      rt.for_each(on("sim:0"), grid(length), stir, update(a), word{3});
    }
    for (index_t i = 0; i < length; ++i)
      if (mine[static_cast<std::size_t>(i)] != stirred(7, 3, i)) return false;
    return true;
  });
  EXPECT_TRUE(right.get());
}

TEST(borrowed, memory_has_the_sum_that_nobody_has_asked_for) {
  for (const bool device : {false, true}) {
    runtime rt(with_sims(device ? 1 : 0));
    std::vector<word> mine(4, 10);
    {
      const auto a = rt.borrow(std::span(mine), {4}, tiles(4), "sum");
      for (word i = 1; i <= 8; ++i)
        rt.spawn(
            [i](view<word, 1> v) {
              for (index_t k = 0; k < 4; ++k) v(k) += i;
            },
            reduce(a));
    }
    EXPECT_EQ(mine, std::vector<word>(4, 46));
  }
}

TEST(borrowed, memory_has_the_sum_that_nobody_has_asked_for_when_the_runtime_has_ended_before_the_handle) {
  for (const bool device : {false, true})
    for (const index_t tile_length : {4, 3})
      for (const bool by_shutdown : {false, true}) {
        std::vector<word> mine(8, 10);
        array<word, 1> a;
        {
          runtime rt(with_sims(device ? 1 : 0));
          a = rt.borrow(std::span(mine), {8}, tiles(tile_length), "sum");
          for (word i = 1; i <= 8; ++i)
            rt.spawn(
                [i](view<word, 1> v) {
                  for (index_t k = 0; k < 8; ++k) v(k) += i;
                },
                reduce(a));
          if (by_shutdown) {
            EXPECT_TRUE(rt.shutdown(test::patience).complete);
          }
        }
        EXPECT_EQ(mine, std::vector<word>(8, 46));
      }
}

TEST(borrowed, memory_of_failed_tasks_is_the_callers_again_too) {
  runtime rt(with_sims(1));
  std::vector<word> mine(length, 7);
  future<void> bad;
  {
    const auto a = borrow(rt, mine);
    rt.for_each(on("sim:0"), grid(length), stir, update(a), word{3});
    bad = rt.spawn([](view<word, 1>) { throw std::runtime_error("no"); }, update(a.sub({{0}, {10}})));
  }
  EXPECT_TRUE(bad.is_ready());
  for (index_t i = tile; i < length; ++i) ASSERT_EQ(mine[static_cast<std::size_t>(i)], stirred(7, 3, i));
  expect_untouched(rt, mine);
}

TEST(borrowed, memory_is_kept_by_a_view_and_given_back_when_that_closes) {
  runtime rt(with_sims(1));
  std::vector<word> mine(length, 7);
  auto v = [&] {
    const auto a = borrow(rt, mine);
    rt.for_each(on("sim:0"), grid(length), stir, update(a), word{3});
    auto head = a.sub({{0}, {tile}}).update();
    rt.for_each(on("sim:0"), grid(length), stir, update(a), word{5});  // the first of these comes after the view
    return head;
  }();
  EXPECT_EQ(v(2), stirred(7, 3, 2));
  v.close();
  for (index_t i = 0; i < length; ++i) ASSERT_EQ(mine[static_cast<std::size_t>(i)], stirred(stirred(7, 3, i), 5, i));
  expect_untouched(rt, mine);
}

TEST(borrowed, handles_do_not_wait_for_what_their_own_thread_holds_back) {
  runtime rt(with_sims(1));
  std::vector<word> mine(length, 7);
  auto other = rt.filled<word>({4}, tiles(4), 1, "other");
  {
    auto v = other.update();
    {
      const auto a = borrow(rt, mine);
      rt.spawn([](view<const word, 1>, view<word, 1> m) { m(0) = 1; }, read(other), update(a.sub({{0}, {tile}})));
    }
    EXPECT_EQ(mine[0], 7u);
  }
  rt.wait_all();
  EXPECT_EQ(mine[0], 1u);
}

TEST(borrowed, memory_in_a_task_that_uses_it_does_not_wait_for_that_task) {
  runtime rt(options{.threads = 1});
  std::vector<word> mine(length, 7);
  auto a = std::make_unique<array<word, 1>>(borrow(rt, mine));
  test::gate ready;
  const test::opener at_end(ready);
  auto done = rt.spawn(
      [&](view<word, 1> v) {
        if (!ready.pass()) return;
        a.reset();
        v(0) = 1;
      },
      update(a->sub({{0}, {tile}})));
  ready.open();
  done.get();
  rt.wait_all();
  EXPECT_EQ(mine[0], 1u);
  EXPECT_EQ(rt.report().arrays, 0u);
}

TEST(borrowed, handles_that_wait_are_let_go_by_a_shutdown_that_leaves_a_body_behind) {
  std::vector<word> mine(length, 7);
  struct gates {
    test::gate go_on, begun;
  };
  const auto both = std::make_shared<gates>();  // the body that is left behind may be the last to see them
  std::optional<runtime> rt(std::in_place, options{.threads = 1});
  std::thread owner;
  {
    auto a = borrow(*rt, mine);
    rt->spawn(
        [both](view<word, 1>) {
          both->begun.open();
          EXPECT_TRUE(both->go_on.pass());
        },
        update(a));
    ASSERT_TRUE(both->begun.pass());
    owner = std::thread([last = std::move(a)]() mutable { last = {}; });
  }
  EXPECT_FALSE(rt->shutdown(std::chrono::milliseconds(0)).complete);
  owner.join();
  both->go_on.open();
  rt.reset();
}

}  // namespace
