// What this file is for: pieces of a view cover it once and name the right elements, against a model by elements.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "actors/logic/data/assembly.hpp"
#include "actors/logic/data/region.hpp"
#include "points.hpp"

namespace {

using namespace troupe;
using logic::box4;
using logic::point4;
using test::each_point;
using troupe::index_t;

// The element that a point of the view shows; false: the border's constant.
bool shown(const detail::region& r, point4& p) {
  for (int d = 0; d < rank_max; ++d) {
    const index_t lo = r.limit_lo[d], hi = r.limit_hi[d], n = hi - lo;
    if (p[d] >= lo && p[d] < hi) continue;
    if (r.edge == border::fill) return false;
    p[d] = r.edge == border::clamp ? std::clamp(p[d], lo, hi - 1) : lo + ((p[d] - lo) % n + n) % n;
  }
  return true;
}

class assembly : public testing::TestWithParam<unsigned> {};

TEST_P(assembly, covers_the_view_once_with_the_right_elements) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937 random(GetParam());
  const auto pick = [&](index_t lo, index_t hi) { return std::uniform_int_distribution<index_t>(lo, hi)(random); };
  for (int round = 0; round < 20; ++round) {
    detail::array_core a;
    detail::region r;
    for (int d = 0; d < rank_max; ++d) {
      a.spec.size[d] = pick(1, 6);
      a.spec.tile[d] = pick(1, a.spec.size[d]);
      a.grid[d] = (a.spec.size[d] + a.spec.tile[d] - 1) / a.spec.tile[d];
      r.limit_lo[d] = pick(0, a.spec.size[d] - 1);
      r.limit_hi[d] = pick(r.limit_lo[d] + 1, a.spec.size[d]);
      r.lo[d] = pick(r.limit_lo[d] - 3, r.limit_hi[d]);
      r.hi[d] = pick(r.lo[d] + 1, r.lo[d] + 6);
    }
    const border edges[] = {border::clip, border::clamp, border::wrap, border::fill};
    r.edge = edges[pick(0, 3)];
    std::map<point4, point4> sources;
    std::vector<logic::piece> pieces;
    logic::pieces_of(r, a, pieces);
    for (const logic::piece& p : pieces) {
      ASSERT_TRUE(a.tile_box(p.tile).contains(p.from));
      each_point(p.to, [&](point4 at) {
        point4 from;
        for (int d = 0; d < rank_max; ++d) from[d] = std::clamp(at[d] - p.shift[d], p.from.lo[d], p.from.hi[d] - 1);
        if (p.is_plain()) {
          for (int d = 0; d < rank_max; ++d) ASSERT_EQ(from[d], at[d] - p.shift[d]);
        }
        ASSERT_TRUE(sources.emplace(at, from).second) << "twice";
      });
    }
    std::size_t expected = 0;
    bool constant = false;
    each_point(logic::view_box(r), [&](point4 at) {
      point4 from = at;
      if (!shown(r, from)) {
        constant = true;
        return;
      }
      ++expected;
      const auto found = sources.find(at);
      ASSERT_NE(found, sources.end());
      EXPECT_EQ(found->second, from);
    });
    EXPECT_EQ(sources.size(), expected);
    EXPECT_EQ(logic::has_constant_border(r), constant);
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, assembly, testing::Range(0u, 20u));

}  // namespace
