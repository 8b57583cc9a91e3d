// What this file is for: what executors have been given: queues, room, whose it is, what is to be handed over.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/workload.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace {

using namespace troupe::detail;
using testing::ElementsAre;
using troupe::logic::workload;

constexpr float ms = 1e6f;

class listening final : public task_listener {
 public:
  void granted(task_record&) override {}
  void retired(task_record&) override {}
  void after_turn() override {}
};

// A core group of two slots and a node of one, a window of 1 ms.
class workload_of : public testing::Test {
 protected:
  workload_of() {
    w.add(2, troupe::device_kind::cpu);
    w.add(1, troupe::device_kind::node);
  }
  task_record& given(std::size_t to, float ns, float transfer_ns = 0) {
    task_record& t = tasks_.emplace_back();
    w.give(t, to, ns, transfer_ns);
    return t;
  }

  workload w{1 * ms};

 private:
  std::deque<task_record> tasks_;
};

TEST_F(workload_of, a_queue_begins_when_every_slot_has_something) {
  given(0, 8 * ms);
  EXPECT_EQ(w.queue_ns(0), 0);
  EXPECT_TRUE(w.free().contains(0));
  task_record& second = given(0, 2 * ms);
  EXPECT_EQ(w.queue_ns(0), 5 * ms);
  EXPECT_FALSE(w.free().contains(0));
  EXPECT_FALSE(w.roomy().contains(0)) << "beyond the window";
  w.take_off(second);
  EXPECT_EQ(w.queue_ns(0), 0);
  EXPECT_TRUE(w.free().contains(0));
  EXPECT_TRUE(w.roomy().contains(0));
}

TEST_F(workload_of, tasks_that_nobody_has_given_count_like_those_that_were) {
  given(0, 2 * ms);
  w.know_unplaced(0, 3, 6 * ms);
  EXPECT_EQ(w.queue_ns(0), 4 * ms);
  EXPECT_FALSE(w.free().contains(0));
  EXPECT_FALSE(w.roomy().contains(0));
  w.know_unplaced(0, 1, 1 * ms);
  EXPECT_FALSE(w.free().contains(0));
  EXPECT_EQ(w.queue_ns(0), 1.5f * ms);
  w.know_unplaced(0, 0, 0);
  EXPECT_TRUE(w.free().contains(0));
  EXPECT_TRUE(w.roomy().contains(0));
  EXPECT_EQ(w.queue_ns(0), 0);
}

TEST_F(workload_of, a_node_has_room_for_the_next_task_of_each_slot) {
  given(1, 8 * ms);
  EXPECT_FALSE(w.free().contains(1));
  EXPECT_TRUE(w.roomy().contains(1));
  given(1, 8 * ms);
  EXPECT_FALSE(w.roomy().contains(1));
  w.restart(1, 2);
  EXPECT_TRUE(w.roomy().contains(1)) << "it has two slots now";
  EXPECT_EQ(w.slots(1), 2);
}

TEST_F(workload_of, who_waits_for_data_leaves_its_slot_to_another_one) {
  task_record& first = given(0, 8 * ms);
  given(0, 8 * ms);
  ASSERT_FALSE(w.roomy().contains(0));
  w.set_aside(first);
  w.set_aside(first);  // once
  EXPECT_TRUE(w.free().contains(0));
  EXPECT_TRUE(w.roomy().contains(0));
  EXPECT_EQ(w.queue_ns(0), 0);
  task_record& other = given(0, 8 * ms);
  EXPECT_FALSE(w.roomy().contains(0));
  w.outgoing(0).clear();
  w.sent(0);
  w.resume(first);
  EXPECT_THAT(w.outgoing(0), ElementsAre(&first));
  w.take_off(other);
  EXPECT_FALSE(w.free().contains(0)) << "the first has come back to its slot";
  EXPECT_EQ(w.queue_ns(0), 8 * ms);
}

TEST_F(workload_of, no_more_than_two_for_each_slot_do_so) {
  for (int i = 0; i < 4; ++i) w.set_aside(given(0, 8 * ms));
  EXPECT_TRUE(w.roomy().contains(0));
  std::vector<task_record*> more;
  for (int i = 0; i < 2; ++i) w.set_aside(*more.emplace_back(&given(0, 8 * ms)));
  EXPECT_FALSE(w.roomy().contains(0));
  w.take_off(*more[0]);  // it has failed meanwhile
  EXPECT_TRUE(w.roomy().contains(0));
}

TEST_F(workload_of, copies_under_way_go_with_their_share_of_the_tasks) {
  task_record& first = given(1, ms, 4 * ms);
  given(1, ms, 2 * ms);
  EXPECT_EQ(w.moving_ns(1), 6 * ms);
  w.take_off(first);
  EXPECT_EQ(w.moving_ns(1), 3 * ms);
}

TEST_F(workload_of, guesses_are_counted_until_they_have_ended) {
  task_record& guess = given(0, ms);
  EXPECT_EQ(w.tries(0), 1);
  w.take_off(guess);
  EXPECT_EQ(w.tries(0), 0);
  guess.measured_ns = 2 * ms;
  w.note_measured(guess);
  EXPECT_EQ(w.measured_ns(0), 0) << "a guess says nothing of predictions";
  guess.marks |= mark_known;
  w.note_measured(guess);
  EXPECT_EQ(w.measured_ns(0), 2e6);
  EXPECT_EQ(w.predicted_ns(0), 1e6);
}

TEST_F(workload_of, what_is_given_here_is_told_by_whose_it_is) {
  listening other;
  task_record& own = given(0, 2 * ms);
  given(1, 4 * ms);
  task_extra extra;
  extra.listener = &other;
  task_record theirs;
  theirs.extra = &extra;
  w.give(theirs, 0, 3 * ms);
  EXPECT_EQ(w.given().tasks, 2u) << "what a node has been given is not here";
  EXPECT_EQ(w.given().ns, 5 * ms);
  EXPECT_EQ(w.given(&other).tasks, 1u);
  EXPECT_EQ(w.given(&other).ns, 3 * ms);
  w.take_off(theirs);
  w.take_off(own);
  EXPECT_EQ(w.given(&other).tasks, 0u);
  EXPECT_EQ(w.given().tasks, 0u);
  theirs.extra = nullptr;
}

TEST_F(workload_of, what_is_to_be_handed_over_is_found_until_it_is_sent) {
  EXPECT_FALSE(w.something_outgoing());
  task_record& t = given(1, ms);
  EXPECT_EQ(w.next_outgoing(0), 1);
  EXPECT_TRUE(w.something_outgoing());
  EXPECT_THAT(w.outgoing(1), ElementsAre(&t));
  w.sent(1);
  EXPECT_EQ(w.next_outgoing(0), id_set::end);
  w.put_out(t);  // its data has come
  EXPECT_THAT(w.outgoing(1), ElementsAre(&t));
}

}  // namespace
