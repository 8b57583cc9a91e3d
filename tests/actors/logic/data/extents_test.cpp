// What this file is for: room in a file is used again, neighbours are joined, nothing overlaps.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/extents.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

namespace {

using troupe::logic::extents;

TEST(extents, begins_at_multiples_of_the_alignment_and_counts_bytes) {
  extents e(4096);
  EXPECT_EQ(e.take(1), 0u);
  EXPECT_EQ(e.take(5000), 4096u);
  EXPECT_EQ(e.take(4096), 12288u);
  EXPECT_EQ(e.used(), 1u + 5000 + 4096);
}

TEST(extents, takes_the_smallest_gap_that_is_large_enough) {
  extents e(1);
  const auto a = e.take(10), b = e.take(1), c = e.take(5), d = e.take(1);
  e.give(a, 10);
  e.give(c, 5);
  EXPECT_EQ(e.take(4), c);
  EXPECT_EQ(e.take(7), a);
  EXPECT_EQ(e.take(2), a + 7);
  EXPECT_GT(b + d, 0u);
}

TEST(extents, joins_neighbours_and_ends_with_the_last_use) {
  extents e(1);
  const auto a = e.take(3), b = e.take(3), c = e.take(3), d = e.take(3);
  e.give(a, 3);
  e.give(c, 3);
  e.give(b, 3);
  EXPECT_EQ(e.take(9), a);
  e.give(a, 9);
  e.give(d, 3);
  EXPECT_EQ(e.end(), 0u);
  EXPECT_EQ(e.used(), 0u);
}

TEST(extents, never_overlap_whatever_comes_and_goes) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    extents e(8);
    std::map<std::uint64_t, std::uint64_t> taken;
    std::uint64_t sum = 0;
    for (int i = 0; i < 500; ++i) {
      if (taken.empty() || random() % 5 < 3) {
        const std::uint64_t bytes = 1 + random() % 100, at = e.take(bytes);
        ASSERT_EQ(at % 8, 0u);
        const auto after = taken.lower_bound(at);
        if (after != taken.end()) {
          ASSERT_LE(at + bytes, after->first);
        }
        if (after != taken.begin()) {
          ASSERT_LE(std::prev(after)->first + std::prev(after)->second, at);
        }
        taken.emplace(at, bytes);
        sum += bytes;
      } else {
        auto one = taken.begin();
        std::advance(one, static_cast<long>(random() % taken.size()));
        e.give(one->first, one->second);
        sum -= one->second;
        taken.erase(one);
      }
      ASSERT_EQ(e.used(), sum);
    }
    for (const auto& [at, bytes] : taken) e.give(at, bytes);
    EXPECT_EQ(e.end(), 0u);
  }
}

}  // namespace
