// What this file is for: bodies that wait, more of them than threads, with limits, and for what they hold.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::gate;
using namespace std::chrono_literals;

options with(int threads, int spares) {
  options o;
  o.threads = threads;
  o.spare_threads_max = spares;
  return o;
}

TEST(limits_inside, more_bodies_than_threads_wait_for_a_task_that_only_begins_then) {
  for (const int spares : {0, 1, 3}) {
    runtime rt(with(2, spares));
    auto a = rt.filled<int>({1}, tiles(1), 0);
    auto open = a.update();
    auto awaited = rt.spawn([](view<int, 1> v) { v(0) = 5; }, update(a));
    std::atomic<int> here{0};
    gate all_wait;
    const test::opener always(all_wait);
    std::vector<future<void>> bodies;
    for (int i = 0; i < 40; ++i)
      bodies.push_back(rt.spawn([&] {
        if (++here == spares + 2) all_wait.open();
        awaited.get();
      }));
    ASSERT_TRUE(all_wait.pass()) << spares;
    open.close();
    for (auto& b : bodies) ASSERT_TRUE(b.wait_for(test::patience)) << spares;
    EXPECT_EQ(a.read()(0), 5);
  }
}

TEST(limits_inside, tasks_without_slots_leave_the_others_theirs) {
  runtime rt(with(2, 3));
  gate let_go;
  const test::opener always(let_go);
  std::atomic<int> here{0};
  std::vector<future<void>> waiting;
  for (int i = 0; i < 5; ++i)
    waiting.push_back(rt.spawn(task_options{.resources = {{"cpu", 0}}}, [&] {
      ++here;
      EXPECT_TRUE(let_go.pass());
    }));
  while (here != 5) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(rt.spawn([] {}).wait_for(test::patience)) << i;
  let_go.open();
  for (auto& w : waiting) ASSERT_TRUE(w.wait_for(test::patience));
}

TEST(limits_inside, threads_that_were_too_many_end_and_come_again) {
  runtime rt(with(1, 0));
  for (int round = 0; round < 50; ++round) {
    auto outer = rt.spawn([&] { return rt.spawn([&] { return rt.spawn([] { return 3; }).get() + 1; }).get() + 1; });
    ASSERT_TRUE(outer.wait_for(test::patience)) << round;
    EXPECT_EQ(outer.get(), 5);
    auto yields = rt.spawn([&] { yield_core([&] { EXPECT_TRUE(rt.spawn([] {}).wait_for(test::patience)); }); });
    ASSERT_TRUE(yields.wait_for(test::patience)) << round;
  }
}

TEST(limits_inside, a_wait_with_a_limit_ends_in_time_whatever_the_awaited_body_takes) {
  for (const int threads : {1, 2, 4}) {
    runtime rt(with(threads, 256));
    gate let_go;
    const test::opener always(let_go);
    auto waits = rt.spawn([&] {
      auto slow = rt.spawn([&] { EXPECT_TRUE(let_go.pass()); });
      const bool ended = slow.wait_for(20ms);
      let_go.open();
      slow.get();
      return ended;
    });
    ASSERT_TRUE(waits.wait_for(test::patience)) << threads;
    EXPECT_FALSE(waits.get()) << threads;
  }
}

TEST(limits_inside, a_body_may_wait_for_one_that_waits_for_it_as_long_as_its_limit_is) {
  runtime rt(with(1, 256));
  std::atomic<future<void>*> outer{nullptr};
  gate told;
  const test::opener always(told);
  auto f = rt.spawn([&] {
    EXPECT_TRUE(told.pass());
    auto g = rt.spawn([&] { outer.load()->wait(); });
    const bool ended = g.wait_for(20ms);
    return std::pair(ended, std::move(g));
  });
  future<void> after = rt.spawn([](const std::pair<bool, future<void>>&) {}, f);
  outer = &after;
  told.open();
  ASSERT_TRUE(f.wait_for(test::patience));
  EXPECT_FALSE(f.get().first);
  rt.wait_all();
}

// Bodies look again and again whether the next one has ended, which has not begun: more than there are spares, and with
// so much to do in between that at any time some of them run.
TEST(limits_inside, bodies_that_look_again_and_again_leave_slots_to_what_they_wait_for) {
  for (const int spares : {0, 2, 8}) {
    const int number = spares + 20;
    std::vector<future<int>> all(static_cast<std::size_t>(number) + 1);
    runtime rt(with(2, spares));
    gate begin;
    const test::opener always(begin);
    for (std::size_t i = 0; i + 1 < all.size(); ++i)
      all[i] = rt.spawn([&, i] {
        EXPECT_TRUE(begin.pass());
        while (!all[i + 1].wait_for(1ms)) {
          const auto until = std::chrono::steady_clock::now() + 1ms;
          while (std::chrono::steady_clock::now() < until) {
          }
        }
        return all[i + 1].get() + 1;
      });
    all.back() = rt.spawn([] { return 1; });
    begin.open();
    ASSERT_TRUE(all[0].wait_for(test::patience)) << spares;
    EXPECT_EQ(all[0].get(), number + 1);
  }
}

errc code_of_wait(runtime& rt, const task_options& holds, const task_options& needs) {
  auto body = rt.spawn(holds, [&] {
    try {
      rt.spawn(needs, [] {}).get();
    } catch (const error& e) {
      return e.code();
    }
    return errc::cancelled;  // nothing was thrown
  });
  EXPECT_TRUE(body.wait_for(test::patience));
  return body.get();
}

TEST(limits_inside, a_body_that_waits_for_what_needs_its_resource_is_told) {
  options o = with(2, 8);
  o.resources = {{"io", 1}, {"licence", 3}};
  o.devices = {{.name = "sim:0", .memory_bytes = 1 << 20}};
  o.cost_cache = "none";
  runtime rt(o);
  const auto of = [](const char* name, double n) { return task_options{.resources = {{name, n}}}; };
  EXPECT_EQ(code_of_wait(rt, of("io", 1), of("io", 1)), errc::would_deadlock);
  EXPECT_EQ(code_of_wait(rt, of("licence", 2), of("licence", 2)), errc::would_deadlock);
  EXPECT_EQ(code_of_wait(rt, of("gpu", 1), of("gpu", 1)), errc::would_deadlock);
  EXPECT_EQ(code_of_wait(rt, of("licence", 2), of("licence", 1)), errc::cancelled);
  EXPECT_EQ(code_of_wait(rt, of("io", 1), of("licence", 3)), errc::cancelled);
  EXPECT_TRUE(rt.spawn(of("io", 1), [] {}).wait_for(test::patience)) << "nothing is held any more";
}

// The body waits for a task behind one that needs what the body holds.
TEST(limits_inside, a_body_that_waits_for_what_comes_after_one_that_needs_its_resource_is_told) {
  options o = with(2, 8);
  o.resources = {{"io", 1}, {"licence", 3}};
  runtime rt(o);
  const auto a = rt.filled<int>({1}, tiles(1), 0), b = rt.filled<int>({1}, tiles(1), 0);
  const auto copy = [](view<const int, 1> from, view<int, 1> to) { to(0) = from(0); };
  const auto code_behind = [&](const task_options& needs, bool later = false) {
    gate go_on;
    const test::opener always(go_on);
    auto body = rt.spawn(task_options{.resources = {{"io", 1}}}, [&] {
      if (later) rt.spawn([&](view<int, 1>) { EXPECT_TRUE(go_on.pass()); }, update(a));
      rt.spawn(
          needs, [](view<int, 1> v) { ++v(0); }, update(a));
      rt.spawn(copy, read(a), write(b));
      auto last = rt.spawn([](view<const int, 1> v) { return v(0); }, read(b));
      if (later) rt.spawn([&] { go_on.open(); });  // what needs the resource is ready later, perhaps
      try {
        last.get();
      } catch (const error& e) {
        return e.code();
      }
      return errc::cancelled;  // nothing was thrown
    });
    EXPECT_TRUE(body.wait_for(test::patience));
    return body.get();
  };
  EXPECT_EQ(code_behind({.resources = {{"io", 1}}}), errc::would_deadlock);
  EXPECT_EQ(code_behind({.resources = {{"licence", 1}}}), errc::cancelled);
  EXPECT_EQ(code_behind({}), errc::cancelled);
  EXPECT_EQ(code_behind({.resources = {{"io", 1}}}, true), errc::would_deadlock);
  EXPECT_EQ(code_behind({}, true), errc::cancelled);
  EXPECT_EQ(a.read()(0), 5) << "it ran once the body had ended";
}

}  // namespace
