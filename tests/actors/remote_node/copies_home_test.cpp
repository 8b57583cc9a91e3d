// What this file is for: copies come for a job or to be saved, and a failed write makes those that have seen it
// worthless.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/copies_home.hpp"

#include <gtest/gtest.h>

namespace {

using troupe::detail::array_core;
using troupe::detail::copies_home;
using troupe::detail::saved_tile;

struct copies_home_test : testing::Test {
  static bool any(const saved_tile&) { return true; }
  static bool none(const saved_tile&) { return false; }
  array_core a, b;
  copies_home copies;
};

TEST_F(copies_home_test, are_told_of_once_what_wrote_them_is_accounted_for) {
  copies.ask(1, a, 3, 7, 20, 0);
  EXPECT_FALSE(copies.has_news());
  const auto arrival = copies.arrived(1, true);
  EXPECT_EQ(arrival.array, &a);
  EXPECT_EQ(arrival.for_job, 0u);
  EXPECT_EQ(copies.find(1), nullptr);
  EXPECT_TRUE(copies.has_news());
  EXPECT_TRUE(copies.take_accounted(none).saved.empty());
  const auto news = copies.take_accounted(any);
  ASSERT_EQ(news.saved.size(), 1u);
  EXPECT_EQ(news.saved[0].tile, 3u);
  EXPECT_EQ(news.saved[0].version, 7u);
  EXPECT_TRUE(news.not_saved.empty());
  EXPECT_FALSE(copies.has_news());
}

TEST_F(copies_home_test, for_a_job_are_handed_to_it_and_not_told) {
  copies.ask(1, a, 3, 7, 20, 99);
  const auto arrival = copies.arrived(1, true);
  EXPECT_EQ(arrival.for_job, 99u);
  EXPECT_EQ(arrival.tile.array, &a);
  EXPECT_FALSE(copies.has_news());
}

TEST_F(copies_home_test, that_cannot_be_sent_are_not_saved) {
  copies.ask(1, a, 3, 7, 20, 0);
  copies.ask(2, a, 4, 7, 21, 99);
  copies.arrived(1, false);
  EXPECT_EQ(copies.arrived(2, false).tile.array, nullptr);
  const auto news = copies.take_accounted(any);
  EXPECT_TRUE(news.saved.empty());
  ASSERT_EQ(news.not_saved.size(), 1u);
  EXPECT_EQ(news.not_saved[0].second, 3u);
}

TEST_F(copies_home_test, that_have_seen_a_failed_write_are_worthless) {
  copies.ask(1, a, 3, 7, 20, 0);
  copies.ask(2, a, 3, 8, 21, 99);
  copies.ask(3, a, 4, 8, 22, 98);
  copies.ask(4, b, 3, 8, 23, 97);
  copies.spoil(a, 3, 21);
  copies.arrived(1, true);  // saw the write before only
  EXPECT_EQ(copies.arrived(2, true).tile.array, nullptr);
  EXPECT_EQ(copies.arrived(3, true).tile.array, &a);
  EXPECT_EQ(copies.arrived(4, true).tile.array, &b);
  EXPECT_EQ(copies.take_accounted(any).saved.size(), 1u);
}

TEST_F(copies_home_test, that_had_come_before_their_write_failed_are_not_saved) {
  copies.ask(1, a, 3, 7, 20, 0);
  copies.arrived(1, true);
  copies.spoil(a, 3, 20);
  const auto news = copies.take_accounted(any);
  EXPECT_TRUE(news.saved.empty());
  EXPECT_EQ(news.not_saved.size(), 1u);
}

TEST_F(copies_home_test, are_dropped_with_the_session_and_those_with_a_handle_named) {
  copies.ask(1, a, 1, 7, 20, 0);   // on its way
  copies.ask(2, a, 2, 7, 21, 99);  // of a job: no handle
  copies.ask(3, a, 3, 7, 22, 0);
  copies.arrived(3, true);
  copies.ask(4, a, 4, 7, 23, 0);
  copies.arrived(4, false);
  EXPECT_EQ(copies.drop().size(), 3u);
  EXPECT_FALSE(copies.has_news());
  EXPECT_EQ(copies.find(1), nullptr);
  EXPECT_TRUE(copies.drop().empty());
}

}  // namespace
