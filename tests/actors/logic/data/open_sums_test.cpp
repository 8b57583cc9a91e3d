// What this file is for: each element that a part reduces into is filled once and added once, at home.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/open_sums.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>

#include "points.hpp"

namespace {

using namespace troupe;
using logic::box4;
using logic::open_sums;
using test::each_point;

box4 row(index_t lo, index_t hi) { return {{lo, 0, 0, 0}, {hi, 1, 1, 1}}; }
constexpr detail::reduction_operator operators[3]{};
constexpr detail::combine_fn op(int n) { return &operators[n]; }

TEST(open_sums, of_which_none_is_open_have_nothing_to_end) {
  open_sums s;
  EXPECT_FALSE(s.any());
  EXPECT_FALSE(s.end({0, 0}));
  EXPECT_FALSE(s.has_other({0, 0}, op(1)));
}

TEST(open_sums, fill_what_a_part_has_not_filled) {
  open_sums s;
  s.open({3, 1}, op(1), 2);
  EXPECT_EQ(s.any(), (open_sums::tile_key{3, 1}));
  EXPECT_EQ(s.home_of({3, 1}), 2u);
  EXPECT_EQ(s.fill({3, 1}, 0, row(0, 4)), (logic::box_list{row(0, 4)}));
  EXPECT_TRUE(s.fill({3, 1}, 0, row(1, 3)).empty());
  EXPECT_EQ(s.fill({3, 1}, 0, row(2, 6)), (logic::box_list{row(4, 6)}));
  EXPECT_EQ(s.fill({3, 1}, 1, row(2, 6)), (logic::box_list{row(2, 6)})) << "another part's";
  const auto ended = s.end({3, 1});
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->home, 2u);
  ASSERT_EQ(ended->addends.size(), 3u);
  for (const open_sums::addend& a : ended->addends) EXPECT_EQ(a.op, op(1));
  EXPECT_EQ(ended->addends.back().part, 1u);
  EXPECT_EQ(ended->addends.back().where, row(2, 6));
  EXPECT_FALSE(s.any());
}

TEST(open_sums, stay_as_they_were_opened_and_begin_anew_once_ended) {
  open_sums s;
  s.open({0, 0}, op(1), 1);
  s.open({0, 0}, op(1), 2);
  EXPECT_EQ(s.home_of({0, 0}), 1u);
  EXPECT_FALSE(s.has_other({0, 0}, op(1)));
  EXPECT_TRUE(s.has_other({0, 0}, op(2)));
  EXPECT_FALSE(s.has_other({0, 1}, op(2)));
  s.fill({0, 0}, 5, row(0, 4));
  ASSERT_TRUE(s.end({0, 0}));
  s.open({0, 0}, op(2), 2);
  EXPECT_EQ(s.home_of({0, 0}), 2u);
  EXPECT_EQ(s.fill({0, 0}, 5, row(0, 4)), (logic::box_list{row(0, 4)})) << "the partial's values were used up";
}

TEST(open_sums, add_each_element_of_random_boxes_once_for_each_part) {
  std::mt19937 random(7);
  const auto at = [&](index_t n) { return static_cast<index_t>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 50; ++round) {
    open_sums s;
    s.open({0, 0}, op(1), 0);
    std::map<std::uint32_t, std::set<logic::point4>> reduced, added;
    for (int i = 0; i < 20; ++i) {
      const auto part = static_cast<std::uint32_t>(1 + random() % 3);
      box4 b{{at(8), at(8), 0, 0}, {0, 0, 1, 1}};
      for (int d = 0; d < 2; ++d) b.hi[d] = b.lo[d] + 1 + at(5);
      each_point(b, [&](const logic::point4& p) { reduced[part].insert(p); });
      for (const box4& fresh : s.fill({0, 0}, part, b)) {
        EXPECT_TRUE(logic::overlap(fresh, b));
      }
    }
    const auto ended = s.end({0, 0});
    ASSERT_TRUE(ended);
    for (const open_sums::addend& a : ended->addends)
      each_point(a.where, [&](const logic::point4& p) { EXPECT_TRUE(added[a.part].insert(p).second); });
    EXPECT_EQ(added, reduced);
  }
}

}  // namespace
