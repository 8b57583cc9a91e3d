// What this file is for: a turn deals with each of its tasks once, also with those that come while it does.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/turn_work.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include <troupe/detail/task.hpp>

namespace {

using troupe::detail::task_record;
using troupe::detail::turn_work;

struct turn_work_test : testing::Test {
  turn_work work;
  task_record a, b, c;
  std::vector<task_record*> seen;
};

TEST_F(turn_work_test, retires_tasks_in_the_order_in_which_they_ended) {
  EXPECT_FALSE(work.any_to_retire());
  work.to_retire(b);
  work.to_retire(a);
  EXPECT_TRUE(work.any_to_retire());
  work.retire_all([&](task_record& t) { seen.push_back(&t); });
  EXPECT_EQ(seen, (std::vector<task_record*>{&b, &a}));
  EXPECT_FALSE(work.any_to_retire());
  work.retire_all([&](task_record& t) { seen.push_back(&t); });
  EXPECT_EQ(seen.size(), 2u) << "each once";
}

TEST_F(turn_work_test, goes_on_with_tasks_that_retire_because_others_have) {
  work.to_retire(a);
  work.retire_all([&](task_record& t) {
    seen.push_back(&t);
    if (&t == &a) work.to_retire(b);
    if (&t == &b) work.to_retire(c);
  });
  EXPECT_EQ(seen, (std::vector<task_record*>{&a, &b, &c}));
  EXPECT_FALSE(work.any_to_retire());
}

TEST_F(turn_work_test, keeps_what_is_to_retire_when_something_is_thrown) {
  work.to_retire(a);
  work.to_retire(b);
  EXPECT_THROW(work.retire_all([](task_record&) { throw std::runtime_error("no memory"); }), std::runtime_error);
  EXPECT_TRUE(work.any_to_retire());
}

TEST_F(turn_work_test, deals_once_with_tasks_that_were_made_for_another_one) {
  work.made().push_back(&a);
  work.made().push_back(&b);
  EXPECT_FALSE(work.any_to_retire()) << "they have not run";
  work.each_made([&](task_record& t) {
    seen.push_back(&t);
    work.to_retire(t);
  });
  EXPECT_EQ(seen, (std::vector<task_record*>{&a, &b}));
  EXPECT_TRUE(work.made().empty());
  EXPECT_TRUE(work.any_to_retire());
}

}  // namespace
