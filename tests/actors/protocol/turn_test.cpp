// What this file is for: the turn goes to one thread at a time, and what is done with it is seen by the next.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/protocol/turn.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace {

using troupe::detail::turn;

TEST(turn, is_had_by_one_and_free_once_that_one_has_left) {
  turn t;
  EXPECT_FALSE(t.is_taken());
  EXPECT_TRUE(t.try_take());
  EXPECT_TRUE(t.is_taken());
  EXPECT_FALSE(t.try_take());
  t.leave();
  EXPECT_TRUE(t.try_take());
}

TEST(turn, may_belong_to_its_actors_thread_at_first) {
  turn t(true);
  EXPECT_FALSE(t.try_take());
  t.leave();
  EXPECT_TRUE(t.try_take());
}

TEST(turn, keeps_threads_apart) {
  turn t;
  long sum = 0;  // changed with the turn only
  std::vector<std::jthread> all;
  for (int i = 0; i < 4; ++i)
    all.emplace_back([&] {
      for (int k = 0; k < 5000; ++k) {
        t.take();
        ++sum;
        t.leave();
      }
    });
  all.clear();
  EXPECT_EQ(sum, 20000);
}

}  // namespace
