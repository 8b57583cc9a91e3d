// What this file is for: which socket a thread that polls reads next, and when all are asked.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/hot_sockets.hpp"

#include <gtest/gtest.h>

#include <map>

namespace {

using sockets = troupe::net::hot_sockets<int>;  // 0: none

// How often each is named; in none of them is anything, or in that one.
std::map<int, int> turns_of(sockets& s, int polls, int with_something = 0) {
  std::map<int, int> turns;
  for (int i = 0; i < polls; ++i) {
    const int n = s.next();
    ++turns[n];
    if (n != 0) s.looked(n, n == with_something);
  }
  return turns;
}

TEST(hot_sockets, without_any_all_are_asked) {
  sockets s;
  EXPECT_EQ(turns_of(s, 100), (std::map<int, int>{{0, 100}}));
}

TEST(hot_sockets, one_is_read_and_all_are_asked_when_nothing_has_come_for_some_looks) {
  sockets s;
  s.has_come(7);
  EXPECT_EQ(turns_of(s, 170), (std::map<int, int>{{0, 10}, {7, 160}}));
  for (int i = 0; i < 15; ++i) s.looked(s.next(), false);
  s.looked(s.next(), true);  // the sixteenth
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(s.next(), 7) << i;
    s.looked(7, false);
  }
  EXPECT_EQ(s.next(), 0);
}

TEST(hot_sockets, all_are_asked_again_soon_after_something_was_found_by_asking) {
  sockets s;
  s.has_come(7);
  s.found_some();
  EXPECT_EQ(s.next(), 7);
  s.looked(7, false);
  EXPECT_EQ(s.next(), 0);
  s.found_some();
  EXPECT_EQ(turns_of(s, 9, 7), (std::map<int, int>{{0, 1}, {7, 8}})) << "whatever comes";
  EXPECT_EQ(turns_of(s, 17), (std::map<int, int>{{0, 1}, {7, 16}})) << "nothing was found";
}

TEST(hot_sockets, one_from_which_something_always_comes_does_not_keep_all_from_being_asked) {
  sockets s;
  s.has_come(7);
  EXPECT_EQ(turns_of(s, 650, 7), (std::map<int, int>{{0, 10}, {7, 640}}));
}

TEST(hot_sockets, several_are_read_as_often_as_each_other_and_all_are_asked_in_between) {
  sockets s;
  for (int n = 1; n <= 4; ++n) s.has_come(n);
  EXPECT_EQ(turns_of(s, 170), (std::map<int, int>{{0, 10}, {1, 40}, {2, 40}, {3, 40}, {4, 40}}));
  s.has_come(3);
  EXPECT_EQ(turns_of(s, 17).size(), 5u);
}

TEST(hot_sockets, a_fifth_takes_the_place_of_one) {
  sockets s;
  for (int n = 1; n <= 5; ++n) s.has_come(n);
  const auto turns = turns_of(s, 50);
  EXPECT_EQ(turns.size(), 5u);
  EXPECT_EQ(turns.count(5), 1u);
}

TEST(hot_sockets, one_that_has_nothing_for_long_is_left_to_those_that_are_asked) {
  sockets s;
  s.has_come(1);
  s.has_come(2);
  int looks = 0;
  for (int i = 0; i < 10'000; ++i) {
    const int n = s.next();
    if (n == 0) continue;
    if (n == 1) ++looks;
    s.looked(n, n == 2);
  }
  EXPECT_EQ(looks, 512);
  EXPECT_EQ(turns_of(s, 100, 2).count(1), 0u);
  s.has_come(1);
  EXPECT_EQ(turns_of(s, 300).count(1), 1u);
}

TEST(hot_sockets, what_is_forgotten_is_not_named_again) {
  sockets s;
  s.has_come(1);
  s.has_come(2);
  s.forget(1);
  s.forget(1);
  s.looked(1, true);
  EXPECT_EQ(turns_of(s, 100).count(1), 0u);
  s.forget(2);
  EXPECT_EQ(turns_of(s, 100), (std::map<int, int>{{0, 100}}));
}

}  // namespace
