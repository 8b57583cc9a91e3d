// What this file is for: changes are told in turn, each often enough and no more.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <vector>

#include "actors/logic/membership/rumours.hpp"

namespace {

using troupe::detail::node_id;
using troupe::logic::rumours;

node_id id(std::uint8_t n) {
  node_id i{};
  i.bytes[0] = n;
  return i;
}

struct rumour_mill : testing::Test {
  std::vector<int> told(std::size_t most, std::size_t enough = 2) {
    std::vector<int> all;
    mill.tell(most, enough, [&](const node_id& n) {
      all.push_back(n.bytes[0]);
      return n.bytes[0] != unknown;
    });
    return all;
  }
  using ids = std::vector<int>;
  rumours mill;
  int unknown = 0;
};

TEST_F(rumour_mill, tells_each_in_turn_until_it_has_been_told_often_enough) {
  for (const std::uint8_t n : {1, 2, 3}) mill.add(id(n), false);
  EXPECT_EQ(told(2), (ids{1, 2}));
  EXPECT_EQ(told(2), (ids{3, 1}));
  EXPECT_EQ(told(9), (ids{2, 3}));
  EXPECT_EQ(told(9), ids());
}

TEST_F(rumour_mill, tells_what_is_added_again_from_the_first_time) {
  mill.add(id(1), false);
  EXPECT_EQ(told(1), ids{1});
  mill.add(id(1), false);
  EXPECT_EQ(told(1), ids{1});
  EXPECT_EQ(told(1), ids{1});
  EXPECT_EQ(told(1), ids());
}

TEST_F(rumour_mill, tells_first_what_is_to_be_told_first) {
  for (const std::uint8_t n : {1, 2, 3}) mill.add(id(n), false);
  EXPECT_EQ(told(1), ids{1});
  mill.add(id(4), true);
  EXPECT_EQ(told(2), (ids{4, 2}));
}

TEST_F(rumour_mill, forgets_what_nothing_is_known_of) {
  unknown = 2;
  for (const std::uint8_t n : {1, 2, 3}) mill.add(id(n), false);
  EXPECT_EQ(told(9), (ids{1, 2, 3}));
  EXPECT_EQ(told(9), (ids{1, 3}));
}

TEST_F(rumour_mill, does_not_tell_what_was_added_while_it_was_quiet) {
  mill.be_quiet(true);
  mill.add(id(1), false);
  mill.be_quiet(false);
  mill.add(id(2), false);
  EXPECT_EQ(told(9), ids{2});
}

}  // namespace
