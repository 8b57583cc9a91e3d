// What this file is for: a poll is passed on as long as it gathers votes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "actors/logic/membership/poll_relay.hpp"

namespace {

using troupe::logic::poll_relay;
using namespace std::chrono_literals;

constexpr poll_relay::time_point start{1h};

TEST(poll_relay, passes_a_poll_on_until_it_has_gathered_nothing_for_a_while) {
  poll_relay r;
  troupe::detail::view_poll p;
  p.accepting = true;
  p.votes = {0, 0, 0};
  EXPECT_TRUE(r.is_news(p, start, 3s));
  EXPECT_TRUE(r.is_news(p, start + 3s, 3s));
  EXPECT_FALSE(r.is_news(p, start + 3001ms, 3s));
  p.votes = {0, 1, 0};
  EXPECT_TRUE(r.is_news(p, start + 4s, 3s));
  EXPECT_TRUE(r.is_news(p, start + 7s, 3s));
  EXPECT_FALSE(r.is_news(p, start + 8s, 3s));
}

TEST(poll_relay, takes_another_phase_for_news) {
  poll_relay r;
  troupe::detail::view_poll p;
  p.votes = {1};
  EXPECT_TRUE(r.is_news(p, start, 1s));
  EXPECT_FALSE(r.is_news(p, start + 2s, 1s));
  p.accepting = !p.accepting;
  EXPECT_TRUE(r.is_news(p, start + 2s, 1s));
}

}  // namespace
