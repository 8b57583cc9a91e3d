// What this file is for: the ring that one thread fills and all may take from.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "actors/protocol/spmc_ring.hpp"

namespace {

using ring = troupe::detail::spmc_ring<int, 8>;

TEST(spmc_ring, gives_in_order_and_then_nothing) {
  int values[20] = {};
  ring r;
  EXPECT_EQ(r.pop(), nullptr);
  for (int round = 0; round < 5; ++round) {  // wraps around
    for (int i = 0; i < 8; ++i) r.push(&values[i]);
    EXPECT_EQ(r.room(), 0u);
    for (int i = 0; i < 8; ++i) ASSERT_EQ(r.pop(), &values[i]);
    EXPECT_TRUE(r.empty());
  }
}

TEST(spmc_ring, gives_all_at_once) {
  int values[8] = {};
  ring r;
  int* out[ring::capacity];
  EXPECT_EQ(r.pop_all(out), 0u);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5; ++i) r.push(&values[i]);
    ASSERT_EQ(r.pop(), &values[0]);
    ASSERT_EQ(r.pop_all(out), 4u);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i], &values[i + 1]);
    EXPECT_EQ(r.size(), 0u);
  }
}

TEST(spmc_ring, gives_each_item_to_exactly_one_of_many_takers) {
  constexpr int n = 20'000;
  std::vector<int> values(n);
  std::vector<std::atomic<int>> taken(n);
  ring r;
  std::atomic<bool> over{false};
  const auto note = [&](const int* v) { taken[static_cast<std::size_t>(v - values.data())].fetch_add(1); };
  const auto thief = [&](bool all) {
    int* out[ring::capacity];
    while (!over.load()) {
      if (!all) {
        if (const int* v = r.pop()) note(v);
        continue;
      }
      const std::size_t got = r.pop_all(out);
      for (std::size_t i = 0; i < got; ++i) note(out[i]);
    }
  };
  {
    std::jthread one(thief, false), two(thief, true);
    for (int i = 0; i < n; ++i) {
      while (r.room() == 0)
        if (const int* v = r.pop()) note(v);
      r.push(&values[static_cast<std::size_t>(i)]);
      if (i % 3 == 0)
        if (const int* v = r.pop()) note(v);
    }
    while (const int* v = r.pop()) note(v);
    over = true;
  }
  for (const auto& t : taken) ASSERT_EQ(t.load(), 1);
}

}  // namespace
