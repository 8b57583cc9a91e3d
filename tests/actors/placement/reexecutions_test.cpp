// What this file is for: long work runs beside the turn, is waited for, and its bodies are counted.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/reexecutions.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

namespace {

using troupe::detail::reexecutions;

TEST(reexecutions, run_beside_who_starts_them_and_each_other) {
  reexecutions all(1e9);
  std::latch both(3);
  std::atomic<int> done{0};
  for (int i = 0; i < 2; ++i)
    all.start([&] {
      both.arrive_and_wait();
      ++done;
    });
  both.arrive_and_wait();  // comes back only if both run meanwhile
  all.wait();
  EXPECT_EQ(done, 2);
}

TEST(reexecutions, have_ended_when_the_wait_for_them_returns) {
  reexecutions all(1e9);
  std::atomic<int> done{0};
  all.wait();  // for none
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < 4; ++i)
      all.start([&] {
        std::this_thread::yield();
        ++done;
      });
    all.wait();
    EXPECT_EQ(done, 4 * round);
  }
}

TEST(reexecutions, have_ended_when_their_owner_is_gone) {
  std::atomic<int> done{0};
  {
    reexecutions all(1e9);
    for (int i = 0; i < 4; ++i)
      all.start([&] {
        std::this_thread::yield();
        ++done;
      });
  }
  EXPECT_EQ(done, 4);
}

TEST(reexecutions, are_left_to_the_function_that_is_given_for_them) {
  reexecutions all(1e9);
  std::vector<std::function<void()>> given;
  all.use([&](std::function<void()> work) { given.push_back(std::move(work)); });
  bool done = false;
  all.start([&] { done = true; });
  all.wait();  // it has started no thread
  EXPECT_FALSE(done);
  ASSERT_EQ(given.size(), 1u);
  given[0]();
  EXPECT_TRUE(done);
}

TEST(reexecutions, add_up_the_bodies_of_all_work) {
  reexecutions all(2.5e9);
  EXPECT_EQ(all.cost_max_ns(), 2.5e9);
  EXPECT_EQ(all.bodies().run, 0u);
  for (int i = 0; i < 4; ++i) all.start([&] { all.count({10, 1}); });
  all.wait();
  all.count({2, 2});
  EXPECT_EQ(all.bodies().run, 42u);
  EXPECT_EQ(all.bodies().threw, 6u);
}

}  // namespace
