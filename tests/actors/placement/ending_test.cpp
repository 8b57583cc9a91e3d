// What this file is for: a runtime ends for one reason, and what is given up meanwhile is counted and handed out once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/ending.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <string>
#include <vector>

namespace {

using troupe::detail::ending;

TEST(ending, says_that_the_runtime_was_shut_down_where_no_reason_is_set) {
  const ending e;
  EXPECT_EQ(e.reason(), "");
  EXPECT_EQ(e.why_not_run(), "the runtime was shut down");
  EXPECT_EQ(e.why_no_more(), "the runtime has been shut down: it takes no more tasks");
}

TEST(ending, tells_tasks_and_callers_the_reason_that_was_set) {
  ending e;
  e.set_reason("placement has failed");
  EXPECT_EQ(e.reason(), "placement has failed");
  EXPECT_EQ(e.why_not_run(), "placement has failed");
  EXPECT_EQ(e.why_no_more(), "placement has failed: it takes no more tasks");
}

TEST(ending, is_begun_by_the_first_failure_only) {
  ending e;
  EXPECT_TRUE(e.note_failure());
  EXPECT_FALSE(e.note_failure());
  EXPECT_FALSE(e.note_failure());
}

TEST(ending, gives_tasks_up_before_it_is_complete) {
  ending e;
  const std::atomic<bool>& complete = e.is_complete();
  EXPECT_FALSE(e.has_begun());
  e.begin();
  EXPECT_TRUE(e.has_begun());
  EXPECT_FALSE(complete.load()) << "bodies that have begun come to their end";
  e.complete();
  EXPECT_TRUE(complete.load()) << "threads keep the reference";
}

TEST(ending, counts_all_that_was_given_up_and_hands_each_coroutine_out_once) {
  ending e;
  const std::coroutine_handle<> waits = std::noop_coroutine();
  e.note(nullptr);
  e.note(waits);
  e.note(nullptr);
  EXPECT_EQ(e.tasks(), 3u);
  EXPECT_EQ(e.take_unresumed(), std::vector<std::coroutine_handle<>>{waits});
  EXPECT_TRUE(e.take_unresumed().empty());
  EXPECT_EQ(e.tasks(), 3u);
}

}  // namespace
