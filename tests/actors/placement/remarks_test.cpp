// What this file is for: remarks are kept once, in order, and not without a bound.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/remarks.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using troupe::detail::remarks;

TEST(remarks, are_kept_in_the_order_in_which_they_came) {
  remarks r;
  EXPECT_TRUE(r.all().empty());
  r.add("kernel 'b' goes elsewhere");
  r.add("kernel 'a' goes elsewhere");
  EXPECT_EQ(r.all(), (std::vector<std::string>{"kernel 'b' goes elsewhere", "kernel 'a' goes elsewhere"}));
}

TEST(remarks, are_kept_once_however_often_they_come) {
  remarks r;
  r.add("one");
  r.add("two");
  r.add("one");
  r.add("two");
  EXPECT_EQ(r.all(), (std::vector<std::string>{"one", "two"}));
}

TEST(remarks, are_bounded_and_the_first_ones_stay) {
  remarks r;
  for (std::size_t i = 0; i <= remarks::most; ++i) r.add(std::to_string(i));
  ASSERT_EQ(r.all().size(), remarks::most);
  EXPECT_EQ(r.all().front(), "0");
  EXPECT_EQ(r.all().back(), std::to_string(remarks::most - 1));
}

}  // namespace
