// What this file is for: what marks of several ways come to together.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <troupe/detail/streams/marks.hpp>
#include <troupe/detail/streams/two_flows.hpp>

namespace {

using troupe::detail::streams::ahead_count;
using troupe::detail::streams::mark;
using troupe::detail::streams::merged_marks;
using troupe::detail::streams::two_marks;

TEST(merged_marks, are_the_least_of_all_ways) {
  merged_marks m;
  const auto a = m.open(), b = m.open();
  EXPECT_FALSE(m.note(a, {10}));  // nothing is known of the other one
  EXPECT_EQ(m.all(), mark{});
  EXPECT_TRUE(m.note(b, {7}));
  EXPECT_EQ(m.all(), mark{7});
  EXPECT_FALSE(m.note(a, {20}));
  EXPECT_TRUE(m.note(b, {30}));
  EXPECT_EQ(m.all(), mark{20});
}

TEST(merged_marks, wait_for_no_way_that_is_idle_or_closed) {
  merged_marks m;
  const auto a = m.open(), b = m.open(), c = m.open();
  m.note(a, {10});
  EXPECT_FALSE(m.note(b, {3, true}));  // c has said nothing yet
  EXPECT_TRUE(m.close(c));
  EXPECT_EQ(m.all(), mark{10});
  EXPECT_FALSE(m.note(b, {4, false}));  // it is back, and behind: time does not go back
  EXPECT_EQ(m.all(), mark{10});
  EXPECT_FALSE(m.note(a, {30}));
  EXPECT_TRUE(m.close(b));
  EXPECT_EQ(m.all(), mark{30});
  EXPECT_FALSE(m.close(a));  // the end is no time
  EXPECT_EQ(m.all(), mark{30});
}

TEST(merged_marks, are_the_latest_where_all_are_idle) {
  merged_marks m;
  const auto a = m.open(), b = m.open();
  m.note(a, {10, true});
  EXPECT_TRUE(m.note(b, {25, true}));
  EXPECT_EQ(m.all(), (mark{25, true}));
  EXPECT_TRUE(m.note(a, {11, false}));
  EXPECT_EQ(m.all(), (mark{25, false}));
}

// Against a model that keeps all that was said.
TEST(merged_marks, equal_a_model_whatever_is_said) {
  std::mt19937_64 random(7);
  const auto number = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int round = 0; round < 2000; ++round) {
    merged_marks m;
    struct way {
      std::int64_t at = mark::never;
      bool idle = false, closed = false;
    };
    std::vector<way> ways(static_cast<std::size_t>(number(1, 4)));
    for (std::size_t i = 0; i < ways.size(); ++i) ASSERT_EQ(m.open(), i);
    mark before;
    for (int n = number(1, 30); n > 0; --n) {
      const auto i = static_cast<std::size_t>(number(0, static_cast<int>(ways.size()) - 1));
      bool changed;
      if (number(0, 9) == 0) {
        ways[i].closed = true;
        changed = m.close(i);
      } else {
        const mark said{number(-50, 50), number(0, 3) == 0};
        ways[i].at = std::max(ways[i].at, said.event_ns);
        ways[i].idle = said.is_idle;
        changed = m.note(i, said);
      }
      std::vector<way> open, awake;
      for (const way& w : ways)
        if (!w.closed) (w.idle ? open : awake).push_back(w);
      mark wanted = before;
      const auto earlier = [](const way& x, const way& y) { return x.at < y.at; };
      if (!awake.empty())
        wanted = {std::max(before.event_ns, std::min_element(awake.begin(), awake.end(), earlier)->at), false};
      else if (!open.empty())
        wanted = {std::max(before.event_ns, std::max_element(open.begin(), open.end(), earlier)->at), true};
      ASSERT_EQ(m.all(), wanted);
      ASSERT_EQ(changed, wanted != before);
      before = wanted;
    }
  }
}

TEST(two_marks, say_which_flow_is_behind) {
  two_marks m;
  EXPECT_TRUE(m.is_first_behind());
  m.note(true, {5});
  EXPECT_FALSE(m.is_first_behind());
  m.note(false, {9});
  EXPECT_TRUE(m.is_first_behind());
  EXPECT_EQ(m.both(), mark{5});
  m.note(true, {5, true});  // nobody waits for it
  EXPECT_EQ(m.reached(true), std::numeric_limits<std::int64_t>::max());
  EXPECT_FALSE(m.is_first_behind());
  m.end(false);
  EXPECT_EQ(m.reached(false), std::numeric_limits<std::int64_t>::max());
}

TEST(ahead_count, counts_items_that_the_other_flow_has_not_reached) {
  ahead_count c;
  c.note(5, mark::never);
  c.note(7, 6);
  c.note(6, 6);  // reached already
  EXPECT_EQ(c.count(), 2u);
  c.reached(5);
  EXPECT_EQ(c.count(), 1u);
  c.note(20, 5);
  c.note(8, 5);  // out of its order: counts until the one before it is reached
  c.reached(10);
  EXPECT_EQ(c.count(), 2u);
  c.reached(20);
  EXPECT_EQ(c.count(), 0u);
}

}  // namespace
