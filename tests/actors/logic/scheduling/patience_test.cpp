// What this file is for: threads look for work where that is cheaper than a wake-up.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>

#include "actors/logic/scheduling/patience.hpp"

namespace {

using troupe::logic::patience;

constexpr std::uint64_t limit = 20'000, wake = 30'000;

patience after(int times, std::uint64_t wait) {
  patience p(limit);
  for (int i = 0; i < times; ++i) p.waited(wait);
  return p;
}

TEST(patience, a_thread_that_knows_nothing_does_not_look) { EXPECT_EQ(patience(limit).looks_for(wake), 0u); }

TEST(patience, short_waits_are_worth_it) {
  EXPECT_EQ(after(1, 1'000).looks_for(wake), limit);
  EXPECT_EQ(after(100, 19'000).looks_for(wake), limit);
}

TEST(patience, long_waits_are_not) {
  EXPECT_EQ(after(100, 21'000).looks_for(wake), 0u);
  EXPECT_EQ(after(100, 10'000'000).looks_for(wake), 0u);
}

TEST(patience, what_a_wake_up_takes_decides) {
  EXPECT_EQ(after(100, 15'000).looks_for(16'000), limit);
  EXPECT_EQ(after(100, 15'000).looks_for(14'000), 0u);
}

TEST(patience, a_mix_is_weighed) {
  patience p(limit);
  // Nine of ten waits are short: looking takes 0.9 * 2 + 0.1 * 20 = 3.8 us, and saves 0.9 of a wake-up.
  for (int i = 0; i < 200; ++i) p.waited(i % 10 == 9 ? 500'000 : 2'000);
  EXPECT_EQ(p.looks_for(wake), limit);
  // A tenth of the waits is short: 0.1 * 2 + 0.9 * 20 = 18.2 us, and saves 0.1.
  for (int i = 0; i < 200; ++i) p.waited(i % 10 == 9 ? 2'000 : 500'000);
  EXPECT_EQ(p.looks_for(wake), 0u);
}

TEST(patience, it_learns_anew_within_a_few_waits) {
  patience p = after(1'000, 5'000'000);
  int needed = 0;
  for (; p.looks_for(wake) == 0 && needed < 100; ++needed) p.waited(1'000);
  EXPECT_LE(needed, 8);
  for (needed = 0; p.looks_for(wake) != 0 && needed < 100; ++needed) p.waited(5'000'000);
  EXPECT_LE(needed, 8);
}

}  // namespace
