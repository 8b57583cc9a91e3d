// What this file is for: rounds: each has its turn once, in another order each time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/membership/rounds.hpp"

#include <gtest/gtest.h>

#include <set>

namespace {

using troupe::detail::node_id;
using troupe::logic::rounds;

node_id id_of(std::uint8_t n) {
  node_id id;
  id.bytes[0] = n;
  return id;
}
std::vector<node_id> ids(std::uint8_t n) {
  std::vector<node_id> all;
  for (std::uint8_t i = 0; i < n; ++i) all.push_back(id_of(i));
  return all;
}
std::vector<node_id> rest_of(rounds& r) {
  std::vector<node_id> all;
  while (const auto n = r.next()) all.push_back(*n);
  return all;
}

TEST(rounds, each_has_its_turn_once_in_an_order_that_differs) {
  rounds r(1);
  EXPECT_TRUE(r.is_over());
  r.begin(ids(50));
  const auto first = rest_of(r);
  EXPECT_TRUE(r.is_over());
  r.begin(ids(50));
  const auto second = rest_of(r);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 50u);
  EXPECT_EQ(first.size(), 50u);
  EXPECT_NE(first, second);
}

TEST(rounds, who_comes_has_a_turn_in_what_is_left_at_any_place) {
  std::set<std::size_t> indices;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    rounds r(seed);
    r.begin(ids(10));
    r.next();
    r.add(id_of(99));
    const auto left = rest_of(r);
    ASSERT_EQ(left.size(), 10u);
    indices.insert(static_cast<std::size_t>(std::find(left.begin(), left.end(), id_of(99)) - left.begin()));
  }
  EXPECT_EQ(indices.size(), 10u);
}

}  // namespace
