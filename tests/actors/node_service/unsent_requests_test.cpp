// What this file is for: requests to nodes that are not there yet wait for them, in their order.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "actors/node_service/unsent_requests.hpp"

namespace {

using namespace troupe;
using namespace troupe::detail;

node_id node(std::uint8_t n) {
  node_id id;
  id.bytes[0] = n;
  return id;
}

net::writer frame(std::uint8_t n) {
  net::writer w;
  w.fixed(n);
  return w;
}

std::vector<int> numbers(const std::vector<net::writer>& frames) {
  std::vector<int> all;
  for (const net::writer& w : frames) all.push_back(std::to_integer<int>(w.view()[0]));
  return all;
}

TEST(unsent_requests, wait_for_their_node_in_their_order) {
  unsent_requests waiting;
  waiting.add(node(1), frame(10));
  waiting.add(node(2), frame(20));
  waiting.add(node(1), frame(11));
  EXPECT_TRUE(waiting.take(node(3)).empty());
  EXPECT_EQ(numbers(waiting.take(node(1))), (std::vector{10, 11}));
  EXPECT_TRUE(waiting.take(node(1)).empty()) << "each is taken once";
  EXPECT_EQ(numbers(waiting.take(node(2))), (std::vector{20}));
}

TEST(unsent_requests, are_dropped_with_their_owner) {
  unsent_requests waiting;
  waiting.add(node(1), frame(10));
  waiting.drop_all();
  EXPECT_TRUE(waiting.take(node(1)).empty());
}

}  // namespace
