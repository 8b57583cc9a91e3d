// What this file is for: things that are to be done at a time: in order, once, and not after they were dropped.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/deadlines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace {

using namespace std::chrono_literals;
using troupe::detail::deadlines;

class a_clock : public testing::Test {
 protected:
  a_clock() {
    all.use_alarm([this](std::chrono::milliseconds after) { rings.push_back(now + after); });
  }
  /// Time passes, and every alarm that was asked for rings.
  void pass(std::chrono::milliseconds d) {
    const auto end = now + d;
    for (;;) {
      const auto next = std::ranges::min_element(rings);
      if (next == rings.end() || *next > end) break;
      now = *next;
      rings.erase(next);
      all.look();
    }
    now = end;
  }
  deadlines::entry at(std::chrono::milliseconds after, int what) {
    return all.add(after, [this, what] { done.push_back(what); });
  }

  std::chrono::nanoseconds now{1s};
  std::vector<std::chrono::nanoseconds> rings;
  std::vector<int> done;
  deadlines all{troupe::detail::runtime_clock([this] { return static_cast<std::uint64_t>(now.count()); })};
};

using deadlines_in_time = a_clock;

TEST_F(deadlines_in_time, are_met_in_their_order) {
  at(20ms, 2);
  at(10ms, 1);
  at(20ms, 3);
  pass(5ms);
  EXPECT_TRUE(done.empty());
  pass(10ms);
  EXPECT_EQ(done, (std::vector{1}));
  pass(10ms);
  EXPECT_EQ(done, (std::vector{1, 2, 3}));
}

TEST_F(deadlines_in_time, that_were_dropped_are_not_met) {
  const auto first = at(10ms, 1);
  at(20ms, 2);
  all.drop(first);
  all.drop(first);
  pass(1s);
  EXPECT_EQ(done, (std::vector{2}));
}

TEST_F(deadlines_in_time, may_ask_for_others) {
  all.add(10ms, [this] { at(10ms, 7); });
  pass(1s);
  EXPECT_EQ(done, (std::vector{7}));
}

TEST_F(deadlines_in_time, that_are_far_away_are_met) {
  at(std::chrono::hours(48), 1);
  at(std::chrono::milliseconds::max(), 2);
  pass(std::chrono::hours(49));
  EXPECT_EQ(done, (std::vector{1}));
}

TEST_F(deadlines_in_time, are_not_met_after_the_end) {
  at(10ms, 1);
  all.close();
  at(10ms, 2);
  pass(1s);
  EXPECT_TRUE(done.empty());
}

}  // namespace
