// What this file is for: farewells are counted until their arrays are freed, or until the runtime ends.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/placement/farewells.hpp"

namespace {

using troupe::detail::farewells;
using troupe::detail::task_record;

TEST(farewells, are_open_until_they_are_removed) {
  farewells f;
  task_record a, b;
  EXPECT_TRUE(f.none());
  EXPECT_TRUE(f.add(a));
  EXPECT_TRUE(f.add(b));
  f.remove(a);
  EXPECT_FALSE(f.none());
  f.remove(b);
  EXPECT_TRUE(f.none());
}

TEST(farewells, are_all_ended_at_the_end_and_none_is_taken_after_it) {
  farewells f;
  task_record a, b, late;
  f.add(a);
  f.add(b);
  std::vector<task_record*> ended;
  f.end_all([&](task_record& t) { ended.push_back(&t); });
  EXPECT_EQ(ended, (std::vector<task_record*>{&a, &b}));
  EXPECT_TRUE(f.none());
  EXPECT_FALSE(f.add(late));
  EXPECT_TRUE(f.none());
  f.remove(a);  // its array is freed later all the same
  EXPECT_TRUE(f.none());
}

}  // namespace
