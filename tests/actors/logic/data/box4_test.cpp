// What this file is for: subtracting and intersecting boxes, against counting single elements.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "actors/logic/data/box4.hpp"
#include "points.hpp"

namespace {

using namespace troupe;
using logic::box4;
using logic::point4;
using test::each_point;
using troupe::index_t;

box4 random_box(std::mt19937& random, index_t extent_max) {
  box4 b;
  for (int d = 0; d < rank_max; ++d) {
    b.lo[d] = static_cast<index_t>(random() % 6) - 2;
    b.hi[d] = b.lo[d] + 1 + static_cast<index_t>(random() % static_cast<unsigned>(extent_max));
  }
  return b;
}

std::vector<box4> rest_of(const box4& a, const box4& b) {
  std::vector<box4> pieces;
  logic::subtract(a, b, [&](const box4& piece) { pieces.push_back(piece); });
  return pieces;
}

constexpr box4 plane(index_t y0, index_t y1, index_t x0, index_t x1) { return {{y0, x0, 0, 0}, {y1, x1, 1, 1}}; }

TEST(box4, subtract_leaves_disjoint_pieces_that_are_all_of_a_outside_b) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const box4 a = random_box(random, 4);
    box4 b = random_box(random, 4);
    if (!logic::overlap(a, b)) continue;
    std::map<point4, int> covered;
    const auto pieces = rest_of(a, b);
    for (const box4& piece : pieces) {
      ASSERT_FALSE(piece.empty()) << to_string(a) << " without " << to_string(b);
      each_point(piece, [&](const point4& p) { ++covered[p]; });
    }
    each_point(a, [&](const point4& p) {
      const auto found = covered.find(p);
      const int times = found == covered.end() ? 0 : found->second;
      ASSERT_EQ(times, b.contains(p) ? 0 : 1) << to_string(a) << " without " << to_string(b);
      if (found != covered.end()) covered.erase(found);
    });
    ASSERT_TRUE(covered.empty()) << "pieces outside of " << to_string(a);
    ASSERT_LE(pieces.size(), 2u * rank_max);
  }
}

TEST(box4, subtract_of_a_box_from_itself_leaves_nothing) {
  EXPECT_TRUE(rest_of(plane(1, 4, 2, 9), plane(1, 4, 2, 9)).empty());
}

TEST(box4, subtract_of_a_larger_box_leaves_nothing) {
  EXPECT_TRUE(rest_of(plane(1, 4, 2, 9), plane(0, 5, 0, 10)).empty());
}

TEST(box4, subtract_of_the_middle_of_a_plane_leaves_a_frame_of_four) {
  index_t volume = 0;
  const auto pieces = rest_of(plane(0, 5, 0, 5), plane(2, 3, 2, 3));
  for (const box4& piece : pieces) volume += piece.volume();
  EXPECT_EQ(pieces.size(), 4u);
  EXPECT_EQ(volume, 24);
}

TEST(box4, overlap_says_the_same_as_a_volume_of_the_intersection) {
  std::mt19937 random(2);
  for (int round = 0; round < 5000; ++round) {
    const box4 a = random_box(random, 3), b = random_box(random, 3);
    ASSERT_EQ(logic::overlap(a, b), intersect(a, b).volume() != 0) << to_string(a) << " and " << to_string(b);
    ASSERT_EQ(logic::overlap(a, b), logic::overlap(b, a));
  }
}

TEST(box4, overlap_is_false_for_boxes_that_share_an_edge_only) {
  EXPECT_FALSE(logic::overlap(plane(0, 2, 0, 2), plane(2, 4, 0, 2)));
  EXPECT_FALSE(logic::overlap(plane(0, 2, 0, 2), plane(0, 2, 2, 4)));
}

}  // namespace
