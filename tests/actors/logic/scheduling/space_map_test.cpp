// What this file is for: memories have owners, and links between them may be known before these are.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/space_map.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace {

using troupe::detail::host_space;
using troupe::detail::no_space;
using troupe::logic::space_map;

TEST(space_map, has_one_space_until_an_executor_with_another_one_comes) {
  space_map m;
  m.add(host_space, 0);
  m.add(host_space, 1);
  EXPECT_TRUE(m.has_one());
  m.add(1, 2);
  EXPECT_FALSE(m.has_one());
  EXPECT_EQ(m.executor_of(1), 2u);
}

TEST(space_map, knows_links_before_the_executors) {
  space_map m;
  m.connect(3, 1);
  EXPECT_TRUE(m.has_one()) << "nobody works there yet";
  m.add(1, 5);
  m.add(3, 6);
  EXPECT_TRUE(m.reaches(1, 3));
  EXPECT_FALSE(m.reaches(3, 1)) << "links have a direction";
  EXPECT_TRUE(m.reached_by(1).contains(3));
  EXPECT_EQ(m.executor_of(3), 6u);
}

TEST(space_map, ends_all_links_of_a_device_that_is_disconnected) {
  space_map m;
  for (const auto& [from, to] : {std::pair{1, 2}, {2, 1}, {2, 3}, {3, 2}, {1, 3}})
    m.connect(static_cast<troupe::detail::memory_space>(from), static_cast<troupe::detail::memory_space>(to));
  m.disconnect(2);
  EXPECT_FALSE(m.reaches(2, 1));
  EXPECT_FALSE(m.reaches(1, 2));
  EXPECT_FALSE(m.reaches(3, 2));
  EXPECT_TRUE(m.reaches(3, 1));
}

TEST(space_map, reaches_nothing_from_no_space_and_nothing_unknown) {
  space_map m;
  m.connect(1, 2);
  EXPECT_FALSE(m.reaches(2, no_space));
  EXPECT_FALSE(m.reaches(9, 1));
}

}  // namespace
