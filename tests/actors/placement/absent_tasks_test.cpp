// What this file is for: a task that waits for a node goes when one has come, when its time is over, or when cancelled.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "actors/placement/absent_tasks.hpp"

namespace {

using namespace troupe::detail;

std::exception_ptr reason(const char* text) { return std::make_exception_ptr(std::runtime_error(text)); }
std::string text_of_reason(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& x) {
    return x.what();
  }
}

struct absent_list : testing::Test {
  // Returns the next deadline; what went is in `cancelled` and `over`.
  std::uint64_t look(std::uint64_t now) {
    cancelled.clear();
    over.clear();
    return all.look(
        now, [&](task_record& t) { cancelled.push_back(&t); },
        [&](task_record& t, const std::exception_ptr& why) { over.emplace_back(&t, text_of_reason(why)); });
  }
  absent_tasks all;
  task_record a, b, c;
  std::vector<task_record*> cancelled;
  std::vector<std::pair<task_record*, std::string>> over;
};

TEST_F(absent_list, is_empty_at_first) {
  EXPECT_FALSE(all.any());
  all.look_soon();
  EXPECT_FALSE(all.is_to_look());
  EXPECT_EQ(look(1'000), 0u);
}

TEST_F(absent_list, gives_tasks_that_can_go_in_the_order_in_which_they_came) {
  for (task_record* t : {&a, &b, &c}) ASSERT_TRUE(all.add(*t, 100, nullptr));
  const auto but_b = [&](task_record& t) { return &t != &b; };
  EXPECT_EQ(all.take(but_b), (std::vector<task_record*>{&a, &c}));
  EXPECT_TRUE(all.any());
  EXPECT_EQ(all.take(but_b), std::vector<task_record*>());
  EXPECT_EQ(all.take([](task_record&) { return true; }), std::vector<task_record*>{&b});
  EXPECT_FALSE(all.any());
}

TEST_F(absent_list, fails_what_is_due_with_its_reason_and_names_the_next_deadline) {
  all.add(a, 300, reason("first"));
  all.add(b, 100, reason("second"));
  all.add(c, 200, reason("third"));
  EXPECT_EQ(look(99), 100u);
  EXPECT_TRUE(over.empty());
  EXPECT_EQ(look(100), 200u);
  EXPECT_EQ(over, (std::vector<std::pair<task_record*, std::string>>{{&b, "second"}}));
  EXPECT_EQ(look(500), 0u);
  EXPECT_EQ(over, (std::vector<std::pair<task_record*, std::string>>{{&a, "first"}, {&c, "third"}}));
  EXPECT_FALSE(all.any());
}

TEST_F(absent_list, gives_up_what_was_cancelled_whatever_its_deadline) {
  all.add(a, 300, reason("first"));
  all.add(b, 100, reason("second"));
  ASSERT_TRUE(claim(a));
  ASSERT_TRUE(claim(b));
  EXPECT_EQ(look(200), 0u);
  EXPECT_EQ(cancelled, (std::vector<task_record*>{&a, &b}));
  EXPECT_TRUE(over.empty()) << "cancelled, and not failed for its deadline";
}

TEST_F(absent_list, does_not_take_what_was_cancelled_before) {
  ASSERT_TRUE(claim(a));
  EXPECT_FALSE(all.add(a, 100, nullptr));
  EXPECT_FALSE(all.any());
}

TEST_F(absent_list, names_the_node_that_left_last) {
  EXPECT_EQ(all.what_has_gone(a), "") << "it is not for want of a node";
  all.note_gone("left");
  all.note_gone("right");
  EXPECT_EQ(all.what_has_gone(a),
            ": node right has gone; task_options::executor_wait makes it wait for one that comes");
}

TEST_F(absent_list, is_looked_at_once_for_each_reason_to) {
  all.add(a, 100, nullptr);
  EXPECT_FALSE(all.is_to_look());
  all.look_soon();
  EXPECT_TRUE(all.is_to_look());
  look(1);
  EXPECT_FALSE(all.is_to_look());
}

}  // namespace
