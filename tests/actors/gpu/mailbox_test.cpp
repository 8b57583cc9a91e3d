// What this file is for: what a device has been given waits in the right order, and nothing of it is lost.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/mailbox.hpp"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace {

using namespace troupe::detail;

struct gpu_mailbox_test : testing::Test {
  bool post(std::vector<task_record*> some) { return mail.post(mail.hold(), some); }
  task_record& internal(int i) {
    task_record& t = tasks[i];
    t.kind = task_kind::transfer;
    return t;
  }
  gpu_mailbox mail;
  task_record tasks[4];
};

TEST_F(gpu_mailbox_test, counts_calls_and_internal_tasks_apart) {
  EXPECT_TRUE(mail.is_empty());
  EXPECT_TRUE(post({&tasks[0]}));
  EXPECT_TRUE(mail.holds_one_call(mail.hold()));
  EXPECT_TRUE(post({&internal(1), &tasks[2]}));
  EXPECT_EQ(mail.queued(), 2u);
  EXPECT_EQ(mail.internal(), 1u);
  EXPECT_FALSE(mail.is_empty());
  EXPECT_FALSE(mail.holds_one_call(mail.hold()));
}

TEST_F(gpu_mailbox_test, one_call_beside_an_internal_task_is_not_one_call_alone) {
  post({&tasks[0], &internal(1)});
  EXPECT_FALSE(mail.holds_one_call(mail.hold()));
}

TEST_F(gpu_mailbox_test, gives_a_call_that_was_put_back_before_all_others) {
  post({&tasks[0], &tasks[1]});
  task_record* const first = mail.pop();
  ASSERT_EQ(first, &tasks[0]);
  mail.put_back(*first);
  EXPECT_EQ(mail.queued(), 2u);
  EXPECT_EQ(mail.pop(), &tasks[0]);
  EXPECT_EQ(mail.pop(), &tasks[1]);
  EXPECT_EQ(mail.pop(), nullptr);
  EXPECT_EQ(mail.queued(), 0u);
}

TEST_F(gpu_mailbox_test, gives_back_the_last_calls_first_and_internal_tasks_never) {
  post({&tasks[0], &internal(1), &tasks[2], &tasks[3]});
  task_record* room[2];
  ASSERT_EQ(mail.take_back(room, [](const task_record&) { return true; }), 2u);
  EXPECT_EQ(room[0], &tasks[3]);
  EXPECT_EQ(room[1], &tasks[2]);
  EXPECT_EQ(mail.queued(), 1u);
  EXPECT_EQ(mail.internal(), 1u);
}

TEST_F(gpu_mailbox_test, keeps_internal_tasks_that_cannot_start_in_their_order) {
  post({&internal(0), &internal(1), &internal(2)});
  EXPECT_TRUE(mail.start_internal([&](task_record& t) { return &t == &tasks[1]; }));
  EXPECT_EQ(mail.internal(), 2u);
  std::vector<task_record*> seen;
  EXPECT_FALSE(mail.start_internal([&](task_record& t) {
    seen.push_back(&t);
    return false;
  }));
  EXPECT_EQ(seen, (std::vector<task_record*>{&tasks[0], &tasks[2]}));
}

TEST_F(gpu_mailbox_test, keeps_the_other_internal_tasks_when_starting_one_throws) {
  post({&internal(0), &internal(1), &internal(2)});
  const auto start = [&](task_record& t) -> bool {
    if (&t == &tasks[1]) throw std::runtime_error("broken");
    return false;
  };
  EXPECT_THROW(mail.start_internal(start), std::runtime_error);
  EXPECT_EQ(mail.internal(), 2u);
  const auto left = mail.close();
  EXPECT_EQ(std::set<task_record*>(left.begin(), left.end()), (std::set<task_record*>{&tasks[0], &tasks[2]}));
}

TEST_F(gpu_mailbox_test, becomes_a_plain_queue_again_only_while_no_call_waits) {
  mail.look_ahead();
  EXPECT_TRUE(mail.looks_ahead());
  post({&tasks[0]});
  EXPECT_FALSE(mail.rest());
  EXPECT_TRUE(mail.looks_ahead());
  EXPECT_EQ(mail.pop(), &tasks[0]);
  EXPECT_TRUE(mail.rest());
  EXPECT_FALSE(mail.looks_ahead());
}

TEST_F(gpu_mailbox_test, gives_up_all_calls_at_once_when_its_device_fails) {
  post({&tasks[0], &internal(1), &tasks[2]});
  EXPECT_EQ(mail.take_calls(), (std::vector<task_record*>{&tasks[0], &tasks[2]}));
  EXPECT_EQ(mail.queued(), 0u);
  EXPECT_EQ(mail.internal(), 1u);
}

TEST_F(gpu_mailbox_test, takes_nothing_once_it_is_closed) {
  post({&internal(0)});
  EXPECT_EQ(mail.close().size(), 1u);
  EXPECT_FALSE(post({&internal(1)}));
  EXPECT_TRUE(mail.close().empty());
}

}  // namespace
