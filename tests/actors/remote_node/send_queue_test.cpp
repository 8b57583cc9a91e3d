// What this file is for: what a node's actor is handed is sent in order, internal tasks first, and can be taken back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/send_queue.hpp"

#include <gtest/gtest.h>

#include <array>

namespace {

using troupe::detail::promise;
using troupe::detail::send_queue;
using troupe::detail::task_kind;
using troupe::detail::task_record;
using need = send_queue::need;

struct send_queue_test : testing::Test {
  send_queue_test() { transfer.kind = task_kind::transfer; }
  void add(std::initializer_list<task_record*> tasks) { queue.add({tasks.begin(), tasks.size()}); }
  task_record one, two, three, transfer;
  send_queue queue;
};

TEST_F(send_queue_test, sends_calls_in_order_after_internal_tasks) {
  add({&one, &two, &transfer});
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(queue.take_next(true), &transfer);
  EXPECT_EQ(queue.take_next(true), &one);
  EXPECT_EQ(queue.take_next(true), &two);
  EXPECT_EQ(queue.take_next(true), nullptr);
  EXPECT_EQ(queue.size(), 0u);
}

TEST_F(send_queue_test, sends_internal_tasks_to_a_node_that_has_enough_calls) {
  add({&one, &transfer});
  EXPECT_EQ(queue.take_next(false), &transfer);
  EXPECT_EQ(queue.take_next(false), nullptr);
  EXPECT_EQ(queue.size(), 1u);
}

TEST_F(send_queue_test, gives_the_last_calls_back_first_and_no_internal_tasks) {
  add({&one, &two, &three, &transfer});
  std::array<task_record*, 2> room{};
  const auto not_two = [&](const task_record& t) { return &t != &two; };
  EXPECT_EQ(queue.take_back(room, not_two), 2u);
  EXPECT_EQ(room[0], &three);
  EXPECT_EQ(room[1], &one);
  EXPECT_EQ(queue.take_back(room, not_two), 0u);
  EXPECT_EQ(queue.size(), 2u);
}

TEST_F(send_queue_test, lets_calls_wait_for_a_batch_but_no_internal_task) {
  EXPECT_EQ(queue.urgency(2), need::nothing);
  add({&one});
  EXPECT_EQ(queue.urgency(2), need::may_wait);
  add({&two});
  EXPECT_EQ(queue.urgency(2), need::send_now);
  queue.take_next(true);
  add({&transfer});
  EXPECT_EQ(queue.urgency(2), need::send_now);
}

TEST_F(send_queue_test, keeps_what_is_put_off_until_it_resumes) {
  queue.put_off(transfer);
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.take_next(true), nullptr);
  queue.resume();
  EXPECT_EQ(queue.take_next(true), &transfer);
  queue.resume();
  EXPECT_EQ(queue.take_next(true), nullptr);
}

TEST_F(send_queue_test, gives_all_up_what_was_put_off_included) {
  task_record later;
  later.kind = task_kind::forget;
  add({&one, &transfer, &two});
  queue.put_off(later);
  const send_queue::rest all = queue.take_all();
  EXPECT_EQ(all.calls, (std::deque<task_record*>{&one, &two}));
  EXPECT_EQ(all.internal, (std::deque<task_record*>{&transfer, &later}));
  EXPECT_EQ(queue.size(), 0u);
  queue.resume();
  EXPECT_EQ(queue.take_next(true), nullptr);
}

TEST_F(send_queue_test, has_boxes_to_keep_before_the_calls_that_are_added_later) {
  add({&one});
  one.sequence = 7;
  EXPECT_TRUE(queue.has_call(7));
  queue.take_next(true);
  EXPECT_FALSE(queue.has_call(7));
  EXPECT_EQ(queue.urgency(2), need::nothing);
  promise p;
  p.number = 3;
  queue.add(p);
  EXPECT_EQ(queue.urgency(2), need::send_now);
  add({&two});
  EXPECT_EQ(queue.take_next(true), &two);
  const std::vector<promise> all = queue.take_to_keep();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].number, 3u);
  EXPECT_TRUE(queue.take_to_keep().empty());
  queue.add(p);
  queue.forget(3);
  EXPECT_TRUE(queue.take_to_keep().empty()) << "nobody will pull it";
}

TEST_F(send_queue_test, hands_out_what_a_call_expects_once) {
  promise p, q;
  p.number = q.number = 3;
  q.shared = true;
  queue.expect(one, {p});
  queue.expect(two, {q});
  add({&one, &two});
  EXPECT_FALSE(queue.break_promise(5));
  EXPECT_TRUE(queue.break_promise(3));
  EXPECT_EQ(queue.take_expected(one).at(0).number, 0u);
  EXPECT_TRUE(queue.take_expected(one).empty());
  EXPECT_EQ(queue.take_expected(two).at(0).number, 0u) << "of all that share it";
  queue.expect(two, {q});
  EXPECT_FALSE(queue.break_promise(3)) << "who pulls it has been sent";
}

TEST_F(send_queue_test, tells_what_nobody_wants_once_calls_are_taken_back) {
  promise p, q;
  p.number = 3;
  q.number = 5;
  q.shared = true;
  queue.expect(one, {p, q});
  add({&one, &two});
  std::array<task_record*, 2> room;
  EXPECT_EQ(queue.take_back(room, [](const task_record&) { return true; }), 2u);
  EXPECT_TRUE(queue.take_expected(one).empty());
  const std::vector<promise> all = queue.take_unwanted();
  ASSERT_EQ(all.size(), 1u) << "who pulls the other one has been sent";
  EXPECT_EQ(all[0].number, 3u);
  EXPECT_TRUE(queue.take_unwanted().empty());
}

}  // namespace
