// What this file is for: tasks of another node are found by number and by record, and their entries are used again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/remote_tasks.hpp"

#include <gtest/gtest.h>

#include <set>

namespace {

using namespace troupe::detail;

struct tasks_of_a_node : testing::Test {
  remote_task& start(std::uint64_t id, task_record& t) {
    remote_task& r = all.add(id);
    r.task = &t;
    all.started(r);
    return r;
  }
  remote_tasks all;
  task_record a, b;
};

TEST_F(tasks_of_a_node, are_found_by_number_and_once_started_by_record) {
  EXPECT_TRUE(all.empty());
  remote_task& r = all.add(7);
  EXPECT_TRUE(all.contains(7));
  EXPECT_EQ(all.find(7), &r);
  EXPECT_EQ(all.find(8), nullptr);
  EXPECT_EQ(all.of(a), nullptr);
  r.task = &a;
  all.started(r);
  EXPECT_EQ(all.of(a), &r);
  EXPECT_EQ(all.ended(r), &a);
  EXPECT_EQ(r.task, nullptr);
  EXPECT_EQ(all.of(a), nullptr);
  EXPECT_TRUE(all.contains(7)) << "until it is removed";
  all.remove(r);
  EXPECT_TRUE(all.empty());
}

TEST_F(tasks_of_a_node, leave_nothing_to_the_next_one_in_their_place) {
  remote_task& r = start(1, a);
  r.recalled = true;
  r.on_their_way = 3;
  r.arrays.push_back(nullptr);
  r.returns.emplace_back(0, wire::access_descriptor{});
  r.untold = std::make_unique<wire::task_end>();
  all.ended(r);
  all.remove(r);
  const remote_task& next = start(2, b);
  EXPECT_EQ(&next, &r) << "the entry is used again";
  EXPECT_EQ(next.id, 2u);
  EXPECT_FALSE(next.recalled);
  EXPECT_EQ(next.on_their_way, 0u);
  EXPECT_TRUE(next.arrays.empty());
  EXPECT_TRUE(next.returns.empty());
  EXPECT_EQ(next.untold, nullptr);
}

TEST_F(tasks_of_a_node, are_asked_to_stop) {
  remote_task& r = start(1, a);
  all.stop(1);
  EXPECT_TRUE(r.stop.stop_requested());
  all.ended(r);
  all.remove(r);
  EXPECT_FALSE(start(2, b).stop.stop_requested()) << "of another task";
}

TEST_F(tasks_of_a_node, are_stopped_as_they_start_if_that_was_asked_for_before) {
  start(5, a);
  all.stop(9);
  all.stop(3);  // it has been here, or never will be: numbers grow
  EXPECT_TRUE(start(9, b).stop.stop_requested());
  task_record c, d;
  EXPECT_FALSE(start(10, c).stop.stop_requested());
  EXPECT_FALSE(start(3, d).stop.stop_requested());
}

TEST_F(tasks_of_a_node, are_all_visited) {
  start(1, a), start(2, b);
  std::set<std::uint64_t> ids;
  all.each([&](remote_task& r) { ids.insert(r.id); });
  EXPECT_EQ(ids, (std::set<std::uint64_t>{1, 2}));
}

TEST_F(tasks_of_a_node, are_known_to_have_been_refused) {
  remote_task& r = start(1, a);
  all.note_refused(1);
  all.remove(r);
  EXPECT_TRUE(all.was_refused(1));
  EXPECT_FALSE(all.was_refused(2));
  EXPECT_FALSE(all.was_refused(0)) << "no task";
  for (std::uint64_t id = 10; id < 10'000; ++id) all.note_refused(id);
  EXPECT_TRUE(all.was_refused(1)) << "forgotten, so it may have been";
  EXPECT_TRUE(all.was_refused(9'999));
  EXPECT_FALSE(all.was_refused(10'000));
}

}  // namespace
