// What this file is for: finding and removing fragments gives what looking at each of them does, few or many.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/fragments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using troupe::index_t;
using troupe::rank_max;
using troupe::detail::fragment;
using troupe::detail::fragment_list;
using troupe::logic::box4;

// A list beside a vector of the same fragments. The sequence number tells which is which.
struct pair_of_lists {
  explicit pair_of_lists(const box4& t) : tile(t), list(t) {}

  void add(const box4& where, bool writes) {
    fragment f{where, {nullptr, ++added}, writes, nullptr};
    plain.push_back(f);
    list.add(f);
  }
  static std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> v) {
    std::ranges::sort(v);
    return v;
  }
  void expect_same_in(const box4& where) {
    std::vector<std::uint64_t> found, expected;
    list.each_in(where, [&](const fragment& f) { found.push_back(f.task.sequence); });
    for (const fragment& f : plain)
      if (troupe::logic::overlap(f.where, where)) expected.push_back(f.task.sequence);
    ASSERT_EQ(sorted(found), sorted(expected));
    ASSERT_EQ(list.size(), plain.size());
  }
  template <class F>
  void remove_in(const box4& where, F goes) {
    list.remove_in(where, goes);
    std::erase_if(plain, [&](const fragment& f) { return troupe::logic::overlap(f.where, where) && goes(f); });
  }
  template <class F>
  void remove_if(F goes) {
    list.remove_if(goes);
    std::erase_if(plain, goes);
  }

  box4 tile;
  fragment_list list;
  std::vector<fragment> plain;
  std::uint64_t added = 0;
};

box4 random_box(std::mt19937& random, const box4& in, bool small) {
  box4 b;
  for (int d = 0; d < rank_max; ++d) {
    const index_t extent = in.hi[d] - in.lo[d];
    const index_t most = small ? std::max<index_t>(1, extent / 50) : extent;
    const index_t size = 1 + static_cast<index_t>(random() % static_cast<std::uint64_t>(most));
    b.lo[d] = in.lo[d] + static_cast<index_t>(random() % static_cast<std::uint64_t>(extent - size + 1));
    b.hi[d] = b.lo[d] + size;
  }
  return b;
}

class fragments : public testing::TestWithParam<unsigned> {};

TEST_P(fragments, are_found_and_removed_as_by_looking_at_each) {
  std::mt19937 random(GetParam());
  // Tiles with one long dimension, several, tiny ones, and such that begin far from the origin.
  const std::array<box4, 5> tiles{box4{{0, 0, 0, 0}, {1'000'000'007, 1, 1, 1}}, box4{{0, 0, 0, 0}, {1, 1000, 1, 1}},
                                  box4{{640, 640, 0, 0}, {1280, 1280, 1, 1}}, box4{{3, 5, 7, 9}, {20, 30, 40, 50}},
                                  box4{{0, 0, 0, 0}, {40, 1, 1, 1}}};
  for (const box4& tile : tiles) {
    pair_of_lists both(tile);
    for (int step = 0; step < 600; ++step) {
      const box4 where = random_box(random, tile, random() % 4 != 0);
      switch (random() % 8) {
        case 0: {
          const std::uint64_t rest = random() % 3;
          both.remove_in(where, [&](const fragment& f) { return f.task.sequence % 3 == rest; });
          break;
        }
        case 1:
          if (random() % 40 == 0) {
            const std::uint64_t up_to = both.added * (random() % 3) / 2;
            both.remove_if([&](const fragment& f) { return f.task.sequence <= up_to; });
          }
          break;
        default:
          both.add(where, random() % 2 == 0);
      }
      both.expect_same_in(random_box(random, tile, random() % 2 == 0));
      both.expect_same_in(tile);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, fragments, testing::Range(1u, 21u));

TEST(many_fragments, of_a_tile_that_do_not_overlap_a_box_are_not_looked_at) {
  constexpr index_t n = 4096;
  fragment_list list({{0, 0, 0, 0}, {n * 8, 1, 1, 1}});
  for (index_t i = 0; i < n; ++i) list.add({{{i * 8, 0, 0, 0}, {i * 8 + 8, 1, 1, 1}}, {}, true, nullptr});
  std::size_t found = 0;
  auto fastest = std::chrono::steady_clock::duration::max();
  constexpr int rounds = 20;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (index_t i = 0; i < n; ++i)
      list.each_in({{i * 8 + 2, 0, 0, 0}, {i * 8 + 6, 1, 1, 1}}, [&](const fragment&) { ++found; });
    fastest = std::min(fastest, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_EQ(found, static_cast<std::size_t>(rounds * n));
  const double us = std::chrono::duration<double, std::micro>(fastest).count() / n;
  EXPECT_LT(us, 4.0) << "for a box; to look at all takes ten and more";
}

TEST(many_fragments, are_looked_at_now_and_then) {
  fragment_list list({{0, 0, 0, 0}, {1000, 1, 1, 1}});
  int looks = 0;
  for (index_t i = 0; i < 32; ++i) {
    list.add({{{i, 0, 0, 0}, {i + 1, 1, 1, 1}}, {}, true, nullptr});
    looks += list.is_time_to_look();
  }
  EXPECT_EQ(looks, 0) << "they are few";
  for (index_t i = 32; i < 1000; ++i) {
    list.add({{{i, 0, 0, 0}, {i + 1, 1, 1, 1}}, {}, true, nullptr});
    looks += list.is_time_to_look();
  }
  EXPECT_GE(looks, 4);
  EXPECT_LE(looks, 32) << "all looks together cost about what the additions do";
}

}  // namespace
