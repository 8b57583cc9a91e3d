// What this file is for: which addresses are dialled, when again, and which are forgotten.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/membership/dialling.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using troupe::detail::node_address;
using troupe::detail::node_id;
using time_point = troupe::logic::dialling::time_point;

using addresses = std::vector<node_address>;

class dialling : public testing::Test {
 protected:
  static node_address at(int n) { return {"10.0.0." + std::to_string(n), 7}; }
  static node_id node(std::uint8_t n) {
    node_id id;
    id.bytes[0] = n;
    return id;
  }
  // Returns how long after `then` the address is dialled again, with a dial that is refused at once before it.
  std::chrono::milliseconds wait_after_refusal(const node_address& a, time_point& then) {
    dials.refused(a, then);
    const time_point next = dials.next();
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(next - then);
    then = next;
    EXPECT_EQ(dials.due(then), addresses{a});
    return waited;
  }

  const troupe::logic::dialling::limits limits{
      .first = 100ms, .longest = 400ms, .answer = 6s, .forget = 60s, .addresses = 4};
  troupe::logic::dialling dials{limits, 1};
  time_point now{1h};
};

TEST_F(dialling, dials_an_address_once_until_the_answer_is_there) {
  dials.add(at(1), now);
  EXPECT_EQ(dials.next(), now);
  EXPECT_EQ(dials.due(now), addresses{at(1)});
  EXPECT_EQ(dials.due(now + limits.answer - 1ms), addresses{}) << "a dial is under way";
  EXPECT_EQ(dials.due(now + limits.answer), addresses{}) << "now it has failed";
  EXPECT_EQ(dials.due(now + limits.answer + 2 * limits.first), addresses{at(1)});
}

TEST_F(dialling, doubles_the_wait_up_to_a_limit) {
  dials.add(at(1), now);
  ASSERT_EQ(dials.due(now), addresses{at(1)});
  for (const auto expected : {100ms, 200ms, 400ms, 400ms}) {
    const auto waited = wait_after_refusal(at(1), now);
    EXPECT_GE(waited, expected - expected / 4);
    EXPECT_LE(waited, expected + expected / 4);
  }
}

TEST_F(dialling, waits_shortly_again_after_a_connection_that_was_of_use) {
  dials.add(at(1), now);
  ASSERT_EQ(dials.due(now), addresses{at(1)});
  for (int i = 0; i < 3; ++i) wait_after_refusal(at(1), now);
  dials.reached(node(1), {}, at(1));
  dials.proved(node(1));
  dials.lost(node(1), now, true);
  EXPECT_EQ(dials.due(now), addresses{at(1)}) << "at once";
  EXPECT_LE(wait_after_refusal(at(1), now), 125ms);
}

TEST_F(dialling, lets_addresses_of_a_connected_node_rest) {
  dials.add(at(1), now);
  dials.want(node(1), {at(2)}, now);
  dials.reached(node(1), {at(2)}, at(1));
  EXPECT_EQ(dials.node_at(at(1)), node(1)) << "the address that was dialled leads there, too";
  EXPECT_EQ(dials.due(now + 1h), addresses{});
  EXPECT_EQ(dials.next(), time_point::max());
  dials.want(node(2), {at(2)}, now);
  EXPECT_EQ(dials.node_at(at(2)), node(1)) << "it leads to a node that is connected";
  EXPECT_EQ(dials.due(now), addresses{});
}

TEST_F(dialling, forgets_addresses_of_a_lost_node_but_not_those_that_discovery_named) {
  dials.add(at(1), now);
  dials.reached(node(1), {at(1), at(2)}, std::nullopt);
  dials.lost(node(1), now, false);
  EXPECT_EQ(dials.size(), 2u);
  dials.due(now + limits.forget);
  EXPECT_EQ(dials.size(), 1u);
  EXPECT_EQ(dials.node_at(at(1)), node(1));
  dials.drop(node(1));
  EXPECT_EQ(dials.size(), 1u) << "another node may come to it";
  EXPECT_EQ(dials.node_at(at(1)), std::nullopt);
}

TEST_F(dialling, lets_a_node_be_that_need_not_be_reached) {
  dials.add(at(1), now);
  dials.want(node(1), {at(1), at(2)}, now);
  dials.let_be(node(1), now, true);
  EXPECT_EQ(dials.size(), 1u);
  EXPECT_EQ(dials.due(now + 1h), addresses{});
  dials.let_be(node(1), now, false);
  EXPECT_EQ(dials.due(now), addresses{}) << "after a wait";
  EXPECT_EQ(dials.due(now + 1s), addresses{at(1)});
}

TEST_F(dialling, probes_a_node_that_is_gone_once) {
  dials.probe_gone(node(1), {at(1)}, now);
  EXPECT_EQ(dials.due(now), addresses{at(1)});
  dials.refused(at(1), now);
  EXPECT_EQ(dials.size(), 0u);
  dials.probe_gone(node(1), {at(2)}, now);
  EXPECT_EQ(dials.due(now), addresses{at(2)});
  EXPECT_EQ(dials.due(now + limits.answer), addresses{}) << "not answered";
  EXPECT_EQ(dials.size(), 0u);
}

TEST_F(dialling, never_dials_this_process) {
  dials.add(at(1), now);
  dials.is_self(at(1));
  dials.add(at(1), now + 1s);
  dials.refused(at(1), now);
  EXPECT_EQ(dials.due(now + 1h), addresses{});
}

TEST_F(dialling, knows_a_bounded_number_of_addresses) {
  for (int n = 1; n <= 9; ++n) dials.add(at(n), now);
  EXPECT_EQ(dials.size(), limits.addresses);
  EXPECT_EQ(dials.due(now).size(), limits.addresses);
  dials.probe_gone(node(1), {at(9)}, now);
  EXPECT_EQ(dials.node_at(at(9)), std::nullopt);
}

}  // namespace
