// What this file is for: lists of boxes, against sets of single elements.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/box_list.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "points.hpp"

namespace {

using namespace troupe;
using logic::box4;
using logic::box_list;
using logic::point4;
using points = std::set<point4>;

points points_of(const box_list& all) {
  points found;
  for (const box4& b : all) {
    EXPECT_FALSE(b.empty());
    test::each_point(b, [&](const point4& p) { EXPECT_TRUE(found.insert(p).second) << "two boxes have it"; });
  }
  return found;
}
points points_of(const box4& b) { return points_of(box_list{b}); }
points minus(points from, const points& others) {
  for (const point4& p : others) from.erase(p);
  return from;
}

constexpr box4 plane(index_t y0, index_t y1, index_t x0, index_t x1) { return {{y0, x0, 0, 0}, {y1, x1, 1, 1}}; }

box4 random_box(std::mt19937& random) {
  const auto span = [&](index_t& lo, index_t& hi, unsigned extent) {
    lo = static_cast<index_t>(random() % extent);
    hi = lo + 1 + static_cast<index_t>(random() % (extent - static_cast<unsigned>(lo)));
  };
  box4 b = plane(0, 1, 0, 1);
  span(b.lo[0], b.hi[0], 6);
  span(b.lo[1], b.hi[1], 7);
  span(b.lo[2], b.hi[2], 2);
  return b;
}

box_list random_list(std::mt19937& random) {
  box_list all;
  for (unsigned n = random() % 5; n != 0; --n) {
    const box4 b = random_box(random);
    all = logic::without(all, b);
    all.push_back(b);
  }
  return all;
}

TEST(box_list, has_the_elements_that_sets_have) {
  std::mt19937 random(1);
  for (int round = 0; round < 2'000; ++round) {
    const box_list a = random_list(random), b = random_list(random);
    const box4 c = random_box(random);
    ASSERT_EQ(points_of(logic::without(a, c)), minus(points_of(a), points_of(c)));
    ASSERT_EQ(points_of(logic::without(a, b)), minus(points_of(a), points_of(b)));
    ASSERT_EQ(logic::volume(a), static_cast<index_t>(points_of(a).size()));
    box_list united = a;
    logic::unite(united);
    ASSERT_EQ(points_of(united), points_of(a));
    ASSERT_LE(united.size(), a.size());
  }
}

TEST(box_list, unites_the_cells_of_a_grid_in_any_order_into_one_box) {
  std::mt19937 random(2);
  box_list cells;
  for (index_t y = 0; y < 12; y += 3)
    for (index_t x = 0; x < 10; x += 2) cells.push_back(plane(y, y + 3, x, x + 2));
  for (int round = 0; round < 20; ++round) {
    std::shuffle(cells.begin(), cells.end(), random);
    box_list all = cells;
    logic::unite(all);
    ASSERT_EQ(all, (box_list{plane(0, 12, 0, 10)}));
  }
}

TEST(box_list, keeps_apart_what_is_no_box_together) {
  box_list corner{plane(0, 2, 0, 2), plane(0, 2, 2, 4), plane(2, 4, 0, 2)};
  logic::unite(corner);
  EXPECT_EQ(corner.size(), 2u);
  box_list apart{plane(0, 1, 0, 1), plane(0, 1, 2, 3)};
  logic::unite(apart);
  EXPECT_EQ(apart.size(), 2u);
  box_list none;
  logic::unite(none);
  EXPECT_TRUE(none.empty());
}

}  // namespace
