// What this file is for: what a node has done is counted apart from what those before it in its place have done.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/task_counts.hpp"

#include <gtest/gtest.h>

namespace {

using troupe::executor_report;
using troupe::detail::task_counts;

executor_report now(const task_counts& c) {
  executor_report r;
  c.add_to(r);
  return r;
}
executor_report gone(const task_counts& c, bool is_there) {
  executor_report r;
  c.add_gone_to(r, is_there);
  return r;
}

TEST(task_counts, are_shown_as_the_executors_own) {
  task_counts c;
  c.add_bodies(3, 1);
  c.add_behind();
  c.add_busy(500);
  c.add_bytes_in(10);
  c.add_bytes_out(7);
  const executor_report r = now(c);
  EXPECT_EQ(r.tasks, 3u);
  EXPECT_EQ(r.failed, 1u);
  EXPECT_EQ(r.chained, 1u);
  EXPECT_EQ(r.busy, std::chrono::nanoseconds(500));
  EXPECT_EQ(r.bytes_out, 10u);  // out of the node
  EXPECT_EQ(r.bytes_moved, 17u);
}

TEST(task_counts, of_the_last_node_count_as_gone_when_it_is_not_there) {
  task_counts c;
  c.add_bodies(3, 0);
  EXPECT_EQ(gone(c, true).tasks, 0u);
  EXPECT_EQ(gone(c, false).tasks, 3u);
}

TEST(task_counts, begin_anew_when_another_node_joins) {
  task_counts c;
  c.add_bodies(3, 2);
  c.join();
  c.add_bodies(1, 0);
  EXPECT_EQ(now(c).tasks, 1u);
  EXPECT_EQ(gone(c, true).tasks, 3u);
  EXPECT_EQ(gone(c, true).failed, 2u);
  c.join();
  EXPECT_EQ(gone(c, true).tasks, 4u);
}

}  // namespace
