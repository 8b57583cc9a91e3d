// What this file is for: tasks that were predicted before their kernel turned out to take far longer are released where
// the one before them has ended, as all others are.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <troupe/troupe.hpp>

#include "actors/placement/placement.hpp"
#include "tests/api/gates.hpp"
#include "tests/runtime/open_runtime.hpp"

namespace {

using namespace std::chrono_literals;

struct waits_at_gates {
  test::gate *begun = nullptr, *first = nullptr;
  void operator()(troupe::view<int, 1>) const {
    if (begun) begun->open();
    if (first) {
      EXPECT_TRUE(first->pass());
    }
  }
};

TEST(outdated_predictions, are_renewed_without_a_turn) {
  troupe::options o;
  o.threads = 2;
  o.cost_cache = "none";
  test::open_runtime rt(o);
  troupe::detail::placement& placement = rt.inside().placement_actor();
  auto x = rt.filled<int>({4}, troupe::tiles(4), 0), y = rt.filled<int>({4}, troupe::tiles(4), 0);
  constexpr int behind = 30;
  std::atomic<bool> is_long{false};
  std::atomic<int> steps{0};
  test::gate begun, first, ended, held, may_go;
  const auto step = [&](troupe::view<int, 1> v) {
    if (is_long)
      for (const auto until = std::chrono::steady_clock::now() + 100us; std::chrono::steady_clock::now() < until;) {
      }
    if (v(0) == 0 && ++steps == behind) ended.open();
  };
  const auto set = [&](int to) { rt.spawn([to](troupe::view<int, 1> v) { v(0) = to; }, troupe::update(x)); };
  set(1);
  rt.spawn([](troupe::view<int, 1> v) { v(0) = 1; }, troupe::update(y));
  for (int i = 0; i < 512; ++i) rt.spawn(step, troupe::update(x));
  for (int i = 0; i < 16; ++i) rt.spawn(waits_at_gates{}, troupe::update(x));
  set(0);
  ASSERT_TRUE(placement.wait_quiet(std::chrono::steady_clock::now() + test::patience));

  // These are in order, and predicted to be short.
  rt.spawn(waits_at_gates{&begun, &first}, troupe::update(x));
  ASSERT_TRUE(begun.pass());
  for (int i = 1; i < behind; ++i) rt.spawn(step, troupe::update(x));
  auto last = rt.spawn(step, troupe::update(x));
  (void)placement.report();
  is_long = true;
  for (int i = 0; i < 64; ++i) rt.spawn(step, troupe::update(y));
  rt.spawn([](troupe::view<int, 1>) {}, troupe::update(y)).get();
  (void)placement.report();  // their times are known now

  std::thread holder([&] {
    placement.with_turn([&] {
      held.open();
      EXPECT_TRUE(may_go.pass());
    });
  });
  EXPECT_TRUE(held.pass());
  first.open();
  EXPECT_TRUE(ended.pass()) << "tasks wait for a turn";
  may_go.open();
  holder.join();
  EXPECT_TRUE(placement.wait_quiet(std::chrono::steady_clock::now() + test::patience));
  EXPECT_EQ(steps, behind);
  const troupe::explanation e = placement.explain(*last.task());
  ASSERT_EQ(e.candidates.size(), 1u);
  EXPECT_GE(e.candidates[0].run, 50us) << "it was a microsecond at most";
}

}  // namespace
