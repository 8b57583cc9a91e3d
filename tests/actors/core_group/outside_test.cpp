// What this file is for: when a group's threads poll the network, and when they say that they do not any more.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group/outside.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <tuple>

namespace {

struct network final : troupe::net::control_poller {
  int polls = 0, hurries = 0, rests = 0, waiting = 0;
  std::uint64_t own_turns = 0;
  bool poll() noexcept override {
    ++polls;
    return waiting != 0 && waiting-- != 0;
  }
  void hurry() noexcept override { ++hurries; }
  void rest() override { ++rests; }
  std::uint64_t turns() const noexcept override { return own_turns; }
};

using troupe::detail::outside;

constexpr float moment = 50'000;

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

TEST(outside, is_asked_at_once_where_it_has_heard_something_since_the_thread_had_nothing_to_do) {
  const auto net = std::make_shared<network>();
  outside o(1000, 0);
  o.use(net);
  outside::visit v;
  o.poll(v, 100, 100);
  EXPECT_EQ(net->polls, 0);
  ++net->own_turns;  // it has heard what the thread does now
  o.poll(v, 200, 200);
  o.poll(v, 201, 200);
  EXPECT_EQ(net->polls, 2);
  EXPECT_EQ(net->hurries, 1) << "it is told once that the thread wants it now";
  o.rest(v);
  o.poll(v, 300, 300);
  EXPECT_EQ(net->polls, 2) << "that was not news any more";
}

TEST(outside, is_not_hurried_where_nothing_has_come) {
  const auto net = std::make_shared<network>();
  outside o(5, 0);
  o.use(net);
  outside::visit v;
  o.poll(v, 110, 100);
  EXPECT_EQ(net->polls, 1);
  EXPECT_EQ(net->hurries, 0);
  o.rest(v);
  ++net->own_turns;
  net->waiting = 1;
  EXPECT_TRUE(o.poll(v, 200, 200));
  EXPECT_EQ(net->hurries, 0) << "it was there already";
}

TEST(outside, is_left_to_its_own_thread_for_a_while_after_batches_whatever_it_has_heard) {
  const auto net = std::make_shared<network>();
  outside o(0, 1000);
  o.use(net);
  outside::visit v;
  o.poll(v, 100, 100);
  o.begins(v, 2, 10, moment, 100);
  ++net->own_turns;
  o.poll(v, 200, 200);
  EXPECT_EQ(net->polls, 1);
}

TEST(outside, is_kept_for_short_tasks_one_after_the_other_until_they_are_long_together) {
  const auto net = std::make_shared<network>();
  outside o(0, 0);
  o.use(net);
  outside::visit v;
  o.poll(v, 100, 100);
  o.begins(v, 1, moment * 0.6f, moment, 100);
  EXPECT_TRUE(v.polls);
  o.begins(v, 1, moment * 0.6f, moment, 100);
  EXPECT_FALSE(v.polls) << "nobody has looked in between";
  for (int i = 0; i < 10; ++i) {
    o.poll(v, 200, 200);
    o.begins(v, 1, moment * 0.6f, moment, 200);
    EXPECT_TRUE(v.polls);
  }
}

TEST(outside, is_looked_away_from_for_longer_where_wake_ups_take_longer) {
  EXPECT_LT(outside::moment_ns(5'000, true), outside::moment_ns(20'000, true));
  EXPECT_GE(outside::moment_ns(0, true), 10'000);
  EXPECT_LT(outside::moment_ns(5'000, true), outside::moment_ns(5'000, false)) << "the two threads would share a core";
  for (const bool has_idle_core : {true, false}) {
    EXPECT_LE(outside::moment_ns(1e9f, has_idle_core), 2e6f) << "others wait for so long";
  }
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
                                     {1, moment, true},
                                     {1, 0.0f, false},
                                     {1, moment * 1.01f, false},
                                     {2, 10.0f, false}}) {
    o.poll(v, 100, 100);
    o.begins(v, static_cast<std::size_t>(n), ns, moment, 100);
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
  o.begins(v, 2, 10, moment, 100);
  o.poll(v, 1099, 1000);
  EXPECT_EQ(net->polls, 1);
  o.poll(v, 1100, 1000);
  EXPECT_EQ(net->polls, 2);
}

}  // namespace
