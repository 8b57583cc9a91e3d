// What this file is for: calls and notes are gathered, and taken once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/deferred_calls.hpp"

#include <gtest/gtest.h>

#include <troupe/detail/task.hpp>

namespace {

using namespace troupe::detail;

TEST(deferred_calls, are_taken_once_and_in_order) {
  deferred_calls later;
  task_record a, b, c;
  later.submit(a), later.submit(b);
  later.close(b);
  later.release(c);
  const auto all = later.take();
  EXPECT_EQ(all.submit, (std::vector<task_record*>{&a, &b}));
  EXPECT_EQ(all.close, std::vector<task_record*>{&b});
  EXPECT_EQ(all.released, std::vector<task_record*>{&c});
  EXPECT_TRUE(all.dropped.empty());
  const auto none = later.take();
  EXPECT_TRUE(none.submit.empty() && none.close.empty() && none.released.empty() && none.dropped.empty());
}

TEST(turn_notes, are_taken_once_and_in_order) {
  turn_notes notes;
  task_record a, b;
  notes.add(a, true), notes.add(b, false);
  const auto& taken = notes.take();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].task, &a);
  EXPECT_TRUE(taken[0].was_granted);
  EXPECT_EQ(taken[1].task, &b);
  EXPECT_FALSE(taken[1].was_granted);
  EXPECT_TRUE(notes.take().empty());
}

}  // namespace
