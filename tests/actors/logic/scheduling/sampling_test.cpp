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

TEST(sampling, takes_all_for_a_while_when_it_is_told_to) {
  troupe::logic::sampling s;
  s.all_of_next(16);
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(s.next());
  int taken = 0;
  for (int i = 0; i < 800; ++i) taken += s.next() ? 1 : 0;
  EXPECT_GE(taken, 60);
  EXPECT_LE(taken, 140);
}

}  // namespace
