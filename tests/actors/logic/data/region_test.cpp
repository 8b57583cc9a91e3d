// What this file is for: which elements a region with a border touches, against looking each one up.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "actors/logic/data/region.hpp"
#include "points.hpp"

namespace {

using namespace troupe;
using logic::box4;
using logic::point4;
using test::each_point;
using troupe::index_t;

detail::region region_of(const box4& view, const box4& limit, border edge) {
  detail::region r;
  r.lo = view.lo;
  r.hi = view.hi;
  r.limit_lo = limit.lo;
  r.limit_hi = limit.hi;
  r.edge = edge;
  return r;
}

constexpr box4 line(index_t lo, index_t hi) { return {{lo, 0, 0, 0}, {hi, 1, 1, 1}}; }

// Returns what each element of the view shows, looked up one by one.
std::set<point4> looked_up(const box4& view, const box4& limit, border edge) {
  std::set<point4> touched;
  each_point(view, [&](point4 p) {
    if (edge == border::wrap) {
      for (int d = 0; d < rank_max; ++d) {
        const index_t n = limit.hi[d] - limit.lo[d];
        p[d] = limit.lo[d] + ((p[d] - limit.lo[d]) % n + n) % n;
      }
    } else if (edge == border::clamp) {
      for (int d = 0; d < rank_max; ++d) p[d] = std::clamp(p[d], limit.lo[d], limit.hi[d] - 1);
    } else if (!limit.contains(p)) {
      return;
    }
    touched.insert(p);
  });
  return touched;
}

std::map<point4, int> touched_by(const detail::region& r) {
  std::map<point4, int> touched;
  logic::each_touched(r, [&](const box4& b) { each_point(b, [&](const point4& p) { ++touched[p]; }); });
  return touched;
}

std::vector<box4> boxes_of(const detail::region& r) {
  std::vector<box4> boxes;
  logic::each_touched(r, [&](const box4& b) { boxes.push_back(b); });
  return boxes;
}

class border_rule : public testing::TestWithParam<border> {};

TEST_P(border_rule, touches_each_element_that_the_view_shows_exactly_once) {
  std::mt19937 random(3);
  const auto below = [&](unsigned n) { return static_cast<index_t>(random() % n); };
  for (int round = 0; round < 2000; ++round) {
    box4 limit, view;
    for (int d = 0; d < rank_max; ++d) {
      limit.lo[d] = below(3);
      limit.hi[d] = limit.lo[d] + 1 + below(4);
      view.lo[d] = limit.lo[d] - 5 + below(10);
      view.hi[d] = view.lo[d] + 1 + below(6);  // often larger than the array, often wholly beside it
    }
    const auto touched = touched_by(region_of(view, limit, GetParam()));
    const auto expected = looked_up(view, limit, GetParam());
    std::set<point4> got;
    for (const auto& [p, times] : touched) {
      ASSERT_EQ(times, 1) << "an element twice: view " << to_string(view) << " of " << to_string(limit);
      got.insert(p);
    }
    if (GetParam() == border::clamp) {
      // A window beside the array may name a larger piece of the edge than it shows, never a smaller one.
      ASSERT_TRUE(std::includes(got.begin(), got.end(), expected.begin(), expected.end()))
          << "view " << to_string(view) << " of " << to_string(limit);
    } else {
      ASSERT_EQ(got, expected) << "view " << to_string(view) << " of " << to_string(limit);
    }
  }
}

TEST_P(border_rule, touches_only_what_lies_inside_the_limits) {
  std::mt19937 random(4);
  for (int round = 0; round < 500; ++round) {
    const index_t n = 1 + static_cast<index_t>(random() % 7), at = static_cast<index_t>(random() % 40) - 20;
    const box4 limit = line(3, 3 + n);
    for (const box4& b : boxes_of(region_of(line(at, at + 1 + static_cast<index_t>(random() % 20)), limit, GetParam())))
      ASSERT_TRUE(limit.contains(b)) << to_string(b) << " of " << to_string(limit);
  }
}

std::string rule_name(const testing::TestParamInfo<border>& rule) {
  static const char* const names[] = {"refuse", "clip", "clamp", "wrap", "fill"};
  return names[static_cast<int>(rule.param)];
}

INSTANTIATE_TEST_SUITE_P(region, border_rule, testing::Values(border::clip, border::clamp, border::wrap, border::fill),
                         rule_name);

TEST(region, that_wraps_around_both_edges_of_a_larger_view_is_the_whole_array_once) {
  const auto boxes = boxes_of(region_of(line(-30, 50), line(0, 7), border::wrap));
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0], line(0, 7));
}

TEST(region, that_wraps_over_one_edge_is_two_boxes) {
  EXPECT_EQ(boxes_of(region_of(line(-2, 3), line(0, 10), border::wrap)), (std::vector{line(0, 3), line(8, 10)}));
}

TEST(region, that_wraps_over_the_edges_of_two_dimensions_is_four_boxes) {
  const box4 limit{{0, 0, 0, 0}, {8, 8, 1, 1}};
  EXPECT_EQ(boxes_of(region_of({{-1, -1, 0, 0}, {2, 2, 1, 1}}, limit, border::wrap)).size(), 4u);
}

TEST(region, beside_the_array_touches_nothing_when_it_is_clipped_or_filled) {
  EXPECT_TRUE(boxes_of(region_of(line(12, 15), line(0, 10), border::clip)).empty());
  EXPECT_TRUE(boxes_of(region_of(line(12, 15), line(0, 10), border::fill)).empty());
}

TEST(region, beside_the_array_touches_the_nearest_element_when_it_is_clamped) {
  EXPECT_EQ(boxes_of(region_of(line(12, 15), line(0, 10), border::clamp)), std::vector{line(9, 10)});
  EXPECT_EQ(boxes_of(region_of(line(-9, -5), line(0, 10), border::clamp)), std::vector{line(0, 1)});
}

TEST(region, without_elements_touches_nothing_when_it_is_clipped_filled_or_wrapped) {
  for (const border edge : {border::clip, border::fill, border::wrap})
    EXPECT_TRUE(boxes_of(region_of(line(4, 4), line(0, 10), edge)).empty()) << static_cast<int>(edge);
}

TEST(region, without_elements_touches_nothing_when_it_is_clamped) {
  EXPECT_TRUE(boxes_of(region_of(line(4, 4), line(0, 10), border::clamp)).empty());
}

TEST(region, has_a_view_cut_to_the_limits_only_when_it_is_clipped) {
  EXPECT_EQ(logic::view_box(region_of(line(-3, 20), line(0, 10), border::clip)), line(0, 10));
  EXPECT_EQ(logic::view_box(region_of(line(-3, 20), line(0, 10), border::clamp)), line(-3, 20));
  EXPECT_EQ(logic::view_box(region_of(line(-3, 20), line(0, 10), border::wrap)), line(-3, 20));
}

TEST(region, is_plain_exactly_when_no_border_has_to_be_made_up) {
  EXPECT_TRUE(logic::is_plain(region_of(line(2, 5), line(0, 10), border::wrap)));
  EXPECT_TRUE(logic::is_plain(region_of(line(-2, 5), line(0, 10), border::clip)));
  EXPECT_FALSE(logic::is_plain(region_of(line(-2, 5), line(0, 10), border::clamp)));
  EXPECT_FALSE(logic::is_plain(region_of(line(2, 11), line(0, 10), border::fill)));
}

}  // namespace
