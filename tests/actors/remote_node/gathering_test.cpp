// What this file is for: what is queued for a node is sent by one call a moment later, however much it is.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/gathering.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace {

using troupe::detail::gathering;

struct gathering_test : testing::Test {
  // Lets the moment pass.
  void pass() {
    for (const auto& f : std::exchange(due, {})) f();
  }
  void ask() {
    queue.ask([this] {
      queue.begin();
      ++sent;
    });
  }
  std::vector<gathering::function> due;
  gathering queue{[this](gathering::function f) { due.push_back(std::move(f)); }};
  int sent = 0;
};

TEST_F(gathering_test, sends_a_moment_later_and_not_at_once) {
  ask();
  EXPECT_EQ(sent, 0);
  pass();
  EXPECT_EQ(sent, 1);
}

TEST_F(gathering_test, has_one_call_due_however_often_it_is_asked) {
  for (int i = 0; i < 5; ++i) ask();
  EXPECT_EQ(due.size(), 1u);
  pass();
  EXPECT_EQ(sent, 1);
  pass();
  EXPECT_EQ(sent, 1);
}

TEST_F(gathering_test, needs_another_call_for_what_comes_after_the_first_has_begun) {
  ask();
  pass();
  ask();
  EXPECT_EQ(due.size(), 1u);
  pass();
  EXPECT_EQ(sent, 2);
}

TEST_F(gathering_test, may_be_asked_again_by_the_call_itself) {
  queue.ask([this] {
    queue.begin();
    ++sent;
    ask();  // not all of it could be sent
  });
  pass();
  EXPECT_EQ(sent, 1);
  EXPECT_EQ(due.size(), 1u);
  pass();
  EXPECT_EQ(sent, 2);
}

}  // namespace
