// What this file is for: tasks pass the line for slots where that is fair to the first in it, and are remembered.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group/line_passers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "lone_workplace.hpp"

namespace {

using namespace troupe::detail;

class a_group_of_two_slots : public testing::Test, private parking::wake_conditions {
 protected:
  a_group_of_two_slots() { urgent_.options.priority = 5; }
  // Both slots are with threads of the group; a task that needs both gets in line.
  void form_line() { lot.give_wide(wide_, 2, 0); }
  void queue_one(bool is_urgent) {
    if (is_urgent) ready.extra = &urgent_;
    task_record* const one = &ready;
    queue.push({&one, 1});
  }
  task_record* choose() { return passers.choose(self, lot, queue, threads); }

 private:
  bool somebody_works() const override { return true; }
  bool work_in_sight() const override { return false; }
  bool left_alone() const override { return false; }
  bool work_overdue() const override { return false; }
  void all_asleep() override {}

  const test::lone_workplace work_;
  task_record wide_;
  task_extra urgent_;

 protected:
  task_record ready;
  worker_threads threads{work_.where, [](worker&, bool) {}, [](const auto&) -> std::function<void()> { return [] {}; }};
  parking lot{2, 0, *this, 1};
  task_queue queue{2};
  line_passers passers{1.0};
  worker self{work_.where, 7};
};

TEST_F(a_group_of_two_slots, has_no_line_to_pass_where_nobody_waits) {
  queue_one(true);
  EXPECT_EQ(choose(), nullptr);
  EXPECT_FALSE(self.passes);
  EXPECT_EQ(queue.size(), 1u);
}

TEST_F(a_group_of_two_slots, lets_a_task_of_a_higher_priority_than_the_first_in_line_pass) {
  form_line();
  queue_one(true);
  EXPECT_EQ(choose(), &ready);
  EXPECT_TRUE(self.passes) << "its slot is counted as one that the line may wait for";
  passers.ended(self);
  EXPECT_FALSE(self.passes);
  EXPECT_EQ(choose(), nullptr) << "the queue is empty";
}

TEST_F(a_group_of_two_slots, keeps_a_task_back_that_would_hold_the_first_in_line_up_and_looks_again) {
  form_line();
  ready.predicted_ns = 1e9f;
  queue_one(false);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(choose(), nullptr);
  EXPECT_FALSE(self.passes);
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_GT(self.parking_state.look_again, before) << "whoever holds the other slot may be done by then";
}

}  // namespace
