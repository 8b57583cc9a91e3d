// What this file is for: a thread that says that it looks, and then not again, is found by the one beside it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "actors/logic/scheduling/look_mark.hpp"

namespace {

using troupe::logic::look_mark;

constexpr int here = 3, elsewhere = 4;

TEST(look_mark, a_thread_that_does_not_look_is_not_stuck) {
  look_mark m;
  EXPECT_FALSE(m.is_stuck(1'000'000, 50, here));
  m.set(1'000, here);
  m.clear();
  EXPECT_FALSE(m.is_stuck(1'000'000, 50, here));
}

TEST(look_mark, who_has_not_looked_for_long_is_stuck_behind_the_thread_on_that_core) {
  look_mark m;
  m.set(1'000, here);
  EXPECT_FALSE(m.is_stuck(1'050, 50, here));
  EXPECT_TRUE(m.is_stuck(1'051, 50, here));
  EXPECT_FALSE(m.is_stuck(1'051, 50, elsewhere));
  m.set(1'040, here);  // it has run meanwhile
  EXPECT_FALSE(m.is_stuck(1'051, 50, here));
}

TEST(look_mark, clocks_of_two_cores_may_differ_a_little) {
  look_mark m;
  m.set(1'000, here);
  EXPECT_FALSE(m.is_stuck(990, 50, here));
}

TEST(look_mark, who_was_woken_and_has_not_come_may_be_anywhere) {
  look_mark m;
  m.set(1'000, -1);
  EXPECT_TRUE(m.is_stuck(1'051, 50, here));
  EXPECT_TRUE(m.is_stuck(1'051, 50, elsewhere));
}

TEST(look_mark, one_of_those_who_see_it_moves_it_and_not_again_soon) {
  look_mark m;
  m.set(1'000, here);
  EXPECT_TRUE(m.begin_move(2'000, 500));
  EXPECT_FALSE(m.begin_move(2'000, 500));
  EXPECT_FALSE(m.begin_move(2'500, 500));
  EXPECT_TRUE(m.begin_move(2'501, 500));
}

}  // namespace
