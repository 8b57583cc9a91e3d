// What this file is for: when a group's threads poll the network, and when they say that they do not any more.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group/outside.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace {

struct network final : troupe::net::control_poller {
  int polls = 0, rests = 0, waiting = 0;
  bool poll() noexcept override {
    ++polls;
    return waiting != 0 && waiting-- != 0;
  }
  void rest() override { ++rests; }
};

using troupe::detail::outside;

TEST(outside, is_nothing_where_there_is_no_network) {
  outside o(0, 0);
  outside::visit v;
  EXPECT_FALSE(o.poll(v, 10, 0));
  EXPECT_FALSE(v.polls);
  o.rest(v);
}

TEST(outside, says_whether_something_came) {
  const auto net = std::make_shared<network>();
  outside o(0, 0);
  o.use(net);
  outside::visit v;
  net->waiting = 1;
  EXPECT_TRUE(o.poll(v, 10, 10));
  EXPECT_FALSE(o.poll(v, 10, 10));
  EXPECT_EQ(net->polls, 2);
}

TEST(outside, is_asked_by_those_that_have_had_nothing_to_do_for_a_while_and_then_at_once) {
  const auto net = std::make_shared<network>();
  outside o(5, 0);
  o.use(net);
  outside::visit v;
  o.poll(v, 104, 100);
  EXPECT_EQ(net->polls, 0);
  o.poll(v, 105, 100);
  o.poll(v, 110, 110);
  EXPECT_EQ(net->polls, 2);
}

TEST(outside, is_told_once_that_a_thread_rests_which_has_polled) {
  const auto net = std::make_shared<network>();
  outside o(0, 0);
  o.use(net);
  outside::visit one, other;
  o.rest(one);
  EXPECT_EQ(net->rests, 0) << "it has not polled";
  o.poll(one, 1, 1);
  o.poll(one, 1, 1);
  o.rest(one);
  o.rest(one);
  o.rest(other);
  EXPECT_EQ(net->rests, 1);
  EXPECT_FALSE(one.polls);
}

TEST(outside, is_told_when_the_last_of_several_threads_rests) {
  const auto net = std::make_shared<network>();
  outside o(0, 0);
  o.use(net);
  outside::visit one, other;
  o.poll(one, 1, 1);
  o.poll(other, 1, 1);
  o.rest(one);
  EXPECT_EQ(net->rests, 0) << "the other one polls";
  o.rest(other);
  EXPECT_EQ(net->rests, 1);
}

TEST(outside, is_kept_for_the_time_of_a_short_task_and_no_longer) {
  const auto net = std::make_shared<network>();
  outside o(0, 1000);
  o.use(net);
  outside::visit v;
  int rests = 0;
  for (const auto& [n, ns, stays] : {std::tuple{1, 10.0f, true},
                                     {1, outside::moment_ns, true},
                                     {1, 0.0f, false},
                                     {1, outside::moment_ns * 1.01f, false},
                                     {2, 10.0f, false}}) {
    o.poll(v, 100, 100);
    o.begins(v, static_cast<std::size_t>(n), ns, 100);
    EXPECT_EQ(v.polls, stays) << n << " tasks of " << ns;
    rests += !stays;
    EXPECT_EQ(net->rests, rests);
  }
}

TEST(outside, is_left_to_its_own_thread_for_a_while_after_batches) {
  const auto net = std::make_shared<network>();
  outside o(0, 1000);
  o.use(net);
  outside::visit v;
  o.poll(v, 100, 100);
  o.begins(v, 2, 10, 100);
  o.poll(v, 1099, 1000);
  EXPECT_EQ(net->polls, 1);
  o.poll(v, 1100, 1000);
  EXPECT_EQ(net->polls, 2);
}

}  // namespace
