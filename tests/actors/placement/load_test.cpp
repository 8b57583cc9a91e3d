// What this file is for: what placement says of the load here, and what it makes of the load that nodes tell of.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "stage.hpp"

namespace {

using namespace test;
using namespace std::chrono_literals;

class somebody final : public task_listener {
 public:
  void granted(task_record&) override {}
  void retired(task_record&) override {}
  void after_turn() override {}
};

task_record* submitted_by(stage& s, task_listener* owner) {
  task_record* t = s.task();
  stage::extra(t).listener = owner;
  return s.submit(t);
}

TEST(placement_load, who_is_busy_for_others_comes_after_who_is_not) {
  stage s(2);
  s.placement_actor->know_others(*s.groups[0], 50ms);
  for (int i = 0; i < 4; ++i) s.submitted();
  EXPECT_EQ(s.groups[0]->held.size(), 0u);
  EXPECT_EQ(s.groups[1]->held.size(), 4u);
  s.placement_actor->know_others(*s.groups[0], {});
  for (int i = 0; i < 4; ++i) s.submitted();
  EXPECT_EQ(s.groups[0]->held.size(), 4u);
}

// No owner can keep another one from a node by giving it much to do.
TEST(placement_load, all_may_be_busy_for_others_and_are_given_work_all_the_same) {
  stage s(2);
  for (const auto& g : s.groups) s.placement_actor->know_others(*g, 10s);
  std::vector<task_record*> all;
  for (int i = 0; i < 4; ++i) all.push_back(s.submitted());
  EXPECT_EQ(s.groups[0]->held.size(), 2u);
  EXPECT_EQ(s.groups[1]->held.size(), 2u);
}

TEST(placement_load, what_is_queued_is_counted_and_what_is_of_others_is_told_apart) {
  stage s(1, {}, 2);
  somebody first, second;
  for (int i = 0; i < 4; ++i) submitted_by(s, &first);
  submitted_by(s, nullptr);
  const task_listener* const owners[] = {&first, &second};
  const auto l = s.placement_actor->load(owners);
  EXPECT_EQ(l.slots, 2);
  EXPECT_EQ(l.busy, 0);
  EXPECT_EQ(l.queued, 5u);
  // A kernel that nobody has timed is taken for 10 us; two slots.
  ASSERT_EQ(l.others.size(), 2u);
  EXPECT_EQ(l.others[0], 5us);
  EXPECT_EQ(l.others[1], 25us);
}

TEST(placement_load, a_task_that_has_begun_is_not_queued_and_one_that_has_ended_is_nothing) {
  stage s(1, {}, 2);
  somebody owner;
  task_record* const t = submitted_by(s, &owner);
  std::erase(s.groups[0]->held, t);  // a thread has taken it
  s.groups[0]->begun = 1;
  const task_listener* const owners[] = {&owner};
  auto l = s.placement_actor->load(owners);
  EXPECT_EQ(l.busy, 1);
  EXPECT_EQ(l.queued, 0u);
  EXPECT_EQ(l.others[0], 0us);
  s.groups[0]->held.push_back(t);
  s.groups[0]->begun = 0;
  s.complete(t);
  l = s.placement_actor->load(owners);
  EXPECT_EQ(l.busy, 0);
  EXPECT_EQ(l.others[0], 0us);
  submitted_by(s, nullptr);
  EXPECT_GT(s.placement_actor->load(owners).others[0], 0us);
}

}  // namespace
