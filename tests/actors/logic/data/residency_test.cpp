// What this file is for: copies in a device's memory are found, counted, and leave in the right order.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/residency.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace {

using troupe::logic::replica;
using troupe::logic::residency;

struct residency_test : testing::Test {
  replica& add(std::uint32_t tile, std::size_t bytes = 10) {
    replica r;
    r.array_id = 7;
    r.tile = tile;
    r.bytes = bytes;
    return here.add(std::move(r));
  }
  static bool any(const replica&) { return true; }
  residency here;
};

TEST_F(residency_test, finds_copies_by_array_and_tile_and_counts_their_bytes) {
  add(1);
  add(2, 30);
  EXPECT_EQ(here.find(7, 2)->bytes, 30u);
  EXPECT_EQ(here.find(8, 2), nullptr);
  EXPECT_EQ(here.bytes(), 40u);
  here.erase(*here.find(7, 1));
  EXPECT_EQ(here.find(7, 1), nullptr);
  EXPECT_EQ(here.bytes(), 30u);
  EXPECT_EQ(here.size(), 1u);
}

TEST_F(residency_test, lets_the_one_go_that_was_used_longest_ago) {
  add(1), add(2), add(3);
  EXPECT_EQ(here.victim(any)->tile, 1u);
  here.touch(*here.find(7, 1));
  EXPECT_EQ(here.victim(any)->tile, 2u);
}

TEST_F(residency_test, keeps_what_is_in_use_or_leaving_or_may_not_go) {
  add(1).pins = 1;
  add(2).leaving = true;
  add(3), add(4);
  EXPECT_EQ(here.victim(any)->tile, 3u);
  EXPECT_EQ(here.victim([](const replica& r) { return r.tile != 3; })->tile, 4u);
  EXPECT_EQ(here.victim([](const replica& r) { return r.tile < 3; }), nullptr);
}

TEST_F(residency_test, lets_those_go_first_whose_next_use_is_unknown_or_last) {
  add(1), add(2), add(3), add(4);
  std::map<std::uint32_t, int> turns{{1, 5}, {2, 9}, {3, 7}, {4, 1}};
  const auto next = [&](const replica& r) -> const int* {
    const auto t = turns.find(r.tile);
    return t == turns.end() ? nullptr : &t->second;
  };
  EXPECT_EQ(here.victim(any, next)->tile, 2u);
  turns.erase(3);
  EXPECT_EQ(here.victim(any, next)->tile, 3u);
  here.find(7, 3)->pins = 1;
  EXPECT_EQ(here.victim(any, next)->tile, 2u);
}

TEST_F(residency_test, may_be_emptied_while_it_is_looked_through) {
  add(1), add(2), add(3);
  here.each([&](const replica& r) { here.erase(r); });
  EXPECT_EQ(here.size(), 0u);
  EXPECT_EQ(here.bytes(), 0u);
}

TEST(replica, is_current_while_it_is_not_older_than_what_is_known) {
  replica r;
  r.version = 5;
  EXPECT_FALSE(r.is_current(5)) << "it has no bytes";
  r.filled = true;
  EXPECT_TRUE(r.is_current(5));
  EXPECT_TRUE(r.is_current(4)) << "a write here that has not been accounted for";
  EXPECT_FALSE(r.is_current(6));
  r.version = 2;  // after the numbers have come round
  EXPECT_TRUE(r.is_current(0xfffffffe));
}

TEST(replica, remembers_the_last_read_of_each_lane_until_it_is_written) {
  replica r;
  r.note_read({2, 5});
  r.note_read({3, 1});
  r.note_read({2, 8});
  ASSERT_EQ(r.read_by.size(), 2u);
  EXPECT_EQ(r.read_by[0].until, 8u);
  r.note_write({4, 9});
  EXPECT_TRUE(r.read_by.empty());
  EXPECT_EQ(r.ready.lane, 4);
}

}  // namespace
