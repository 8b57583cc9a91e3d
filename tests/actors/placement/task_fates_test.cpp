// What this file is for: what was decided about a task is found when it comes back, and forgotten when it retires.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <exception>

#include "actors/placement/task_fates.hpp"
#include "collector.hpp"

namespace {

using namespace test;

struct fates_test : testing::Test {
  task_fates fates;
  task_record a, b;
  array_core *x = reinterpret_cast<array_core*>(&a), *y = reinterpret_cast<array_core*>(&b);  // never looked into
  collector node{{0, "node:0", troupe::device_kind::node, 1, 1}};
};

TEST_F(fates_test, of_a_failure_is_found_once_and_the_first_reason_counts) {
  const auto first = std::make_exception_ptr(1), second = std::make_exception_ptr(2);
  fates.fail_if_returned(a, first);
  fates.fail_if_returned(a, second);
  EXPECT_EQ(fates.take_failure(b), nullptr);
  EXPECT_EQ(fates.take_failure(a), first);
  EXPECT_EQ(fates.take_failure(a), nullptr);
}

TEST_F(fates_test, of_lost_inputs_are_found_all_and_once) {
  fates.add_lost_input(node, {&a, x, 3});
  fates.add_lost_input(node, {&b, x, 4});
  fates.add_lost_input(node, {&a, y, 5});
  EXPECT_TRUE(fates.has_lost_inputs());
  const auto lost = fates.take_lost_inputs(a);
  ASSERT_EQ(lost.size(), 2u);
  EXPECT_EQ(lost[0].tile + lost[1].tile, 8u);
  for (const auto& l : lost) {
    EXPECT_EQ(l.at, &node);
    EXPECT_EQ(l.array, l.tile == 3 ? x : y);
  }
  EXPECT_TRUE(fates.take_lost_inputs(a).empty());
  EXPECT_TRUE(fates.has_lost_inputs()) << "of b";
  EXPECT_EQ(fates.take_lost_inputs(b).size(), 1u);
  EXPECT_FALSE(fates.has_lost_inputs());
}

TEST_F(fates_test, are_forgotten_with_the_task) {
  fates.fail_if_returned(a, std::make_exception_ptr(1));
  fates.fail_if_returned(b, std::make_exception_ptr(2));
  fates.add_lost_input(node, {&a, x, 3});
  fates.forget(a);
  EXPECT_EQ(fates.take_failure(a), nullptr);
  EXPECT_FALSE(fates.has_lost_inputs());
  EXPECT_NE(fates.take_failure(b), nullptr);
}

}  // namespace
