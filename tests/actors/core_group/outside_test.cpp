// What this file is for: when a group's threads poll the network, and when they say that they do not any more.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group/outside.hpp"

#include <gtest/gtest.h>

namespace {

struct network final : troupe::net::control_poller {
  int polls = 0, rests = 0, waiting = 0;
  bool poll() noexcept override {
    ++polls;
    return waiting != 0 && waiting-- != 0;
  }
  void rest() override { ++rests; }
};

TEST(outside, is_nothing_where_there_is_no_network) {
  troupe::detail::outside o;
  bool polls = false;
  EXPECT_FALSE(o.poll(polls));
  EXPECT_FALSE(polls);
  o.rest(polls);
}

TEST(outside, says_whether_something_came) {
  const auto net = std::make_shared<network>();
  troupe::detail::outside o;
  o.use(net);
  bool polls = false;
  net->waiting = 1;
  EXPECT_TRUE(o.poll(polls));
  EXPECT_FALSE(o.poll(polls));
  EXPECT_EQ(net->polls, 2);
}

TEST(outside, is_told_once_that_a_thread_rests_which_has_polled) {
  const auto net = std::make_shared<network>();
  troupe::detail::outside o;
  o.use(net);
  bool one = false, other = false;
  o.rest(one);
  EXPECT_EQ(net->rests, 0) << "it has not polled";
  o.poll(one);
  o.poll(one);
  o.rest(one);
  o.rest(one);
  o.rest(other);
  EXPECT_EQ(net->rests, 1);
  EXPECT_FALSE(one);
}

TEST(outside, is_told_when_the_last_of_several_threads_rests) {
  const auto net = std::make_shared<network>();
  troupe::detail::outside o;
  o.use(net);
  bool one = false, other = false;
  o.poll(one);
  o.poll(other);
  o.rest(one);
  EXPECT_EQ(net->rests, 0) << "the other one polls";
  o.rest(other);
  EXPECT_EQ(net->rests, 1);
}

}  // namespace
