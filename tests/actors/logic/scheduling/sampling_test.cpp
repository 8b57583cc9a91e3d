// What this file is for: about one in eight is looked at, also of those that come in turn with others.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/sampling.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

TEST(sampling, takes_one_in_eight_of_each_kind_however_many_take_turns) {
  for (int kinds = 1; kinds <= 64; ++kinds) {
    troupe::logic::sampling s;
    int taken = 0, gap = 0, longest = 0;
    for (int i = 0; i < 800 * kinds; ++i) {
      const bool is = s.next();
      if (i % kinds != 0) continue;
      taken += is ? 1 : 0;
      gap = is ? 0 : gap + 1;
      longest = std::max(longest, gap);
    }
    EXPECT_GE(taken, 60) << kinds;
    EXPECT_LE(taken, 140) << kinds;
    EXPECT_LE(longest, 100) << kinds;
  }
}

using troupe::logic::sampling;

int taken_of(sampling& s, int n) {
  int taken = 0;
  for (int i = 0; i < n; ++i) taken += s.next() ? 1 : 0;
  return taken;
}

TEST(sampling, takes_all_for_a_while_where_something_seems_wrong) {
  sampling s;
  s.suspect();
  EXPECT_EQ(taken_of(s, sampling::all_of_next), sampling::all_of_next);
  const int later = taken_of(s, 800);
  EXPECT_GE(later, 60);
  EXPECT_LE(later, 140);
}

TEST(sampling, takes_all_less_and_less_often_where_nothing_was_wrong) {
  sampling s;
  int all = 0;
  for (int i = 0; i < 2'000; ++i) {
    s.suspect();
    all += taken_of(s, sampling::all_of_next) == sampling::all_of_next ? 1 : 0;
  }
  EXPECT_GE(all, 9);
  EXPECT_LE(all, 20);
}

TEST(sampling, takes_all_each_time_that_something_was_wrong) {
  sampling s;
  for (int i = 0; i < 100; ++i) {
    s.suspect();
    s.confirm();
    EXPECT_EQ(taken_of(s, sampling::all_of_next), sampling::all_of_next) << i;
    taken_of(s, 10);
  }
}

}  // namespace
