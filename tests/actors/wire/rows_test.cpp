// What this file is for: a box in memory becomes as few pieces as can be, in order, and packed rows land in them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/wire/rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/actors/memory/host_arrays.hpp"

namespace {

using namespace troupe::detail;
using troupe::net::pieces;
using word = std::uint32_t;

/// Pieces as (first element, elements), counted from `base`.
using spans = std::vector<std::pair<std::ptrdiff_t, std::size_t>>;
spans shown(const pieces& rows, const void* base) {
  spans all;
  for (const auto& r : rows)
    all.emplace_back((r.data() - static_cast<const std::byte*>(base)) / static_cast<std::ptrdiff_t>(sizeof(word)),
                     r.size() / sizeof(word));
  return all;
}

class rows : public testing::Test {
 protected:
  rows() { std::iota(memory_.begin(), memory_.end(), word{0}); }
  /// A box of that size, whose first element is the one at `first`.
  raw_view view(std::array<troupe::index_t, 4> size, std::array<troupe::index_t, 4> stride, std::size_t first = 0) {
    raw_view v;
    v.data = reinterpret_cast<std::byte*>(&memory_[first]);
    v.lo = {5, -3, 0, 7};  // coordinates do not matter, where the first element lies does
    for (std::size_t d = 0; d < 4; ++d) v.hi[d] = v.lo[d] + size[d];
    v.stride = stride;
    return v;
  }
  spans of(const raw_view& v) { return shown(rows_of(v, sizeof(word)), memory_.data()); }

  std::vector<word> memory_ = std::vector<word>(1000);
};

TEST_F(rows, of_a_box_without_gaps_are_one_piece) {
  EXPECT_EQ(of(view({2, 3, 4, 5}, {60, 20, 5, 1}, 100)), (spans{{100, 120}}));
}

TEST_F(rows, with_gaps_between_them_are_a_piece_each_in_order) {
  EXPECT_EQ(of(view({1, 1, 3, 4}, {300, 300, 10, 1}, 2)), (spans{{2, 4}, {12, 4}, {22, 4}}));
  EXPECT_EQ(of(view({1, 2, 2, 4}, {300, 100, 10, 1})), (spans{{0, 4}, {10, 4}, {100, 4}, {110, 4}}));
}

TEST_F(rows, that_follow_each_other_are_joined_up_to_the_first_gap) {
  EXPECT_EQ(of(view({1, 2, 3, 4}, {300, 50, 4, 1})), (spans{{0, 12}, {50, 12}}));
}

TEST_F(rows, are_not_split_by_a_dimension_of_one_element_whatever_its_stride) {
  EXPECT_EQ(of(view({1, 6, 1, 1}, {99, 1, 77, 55})), (spans{{0, 6}}));
}

TEST_F(rows, are_single_elements_where_neighbours_lie_apart) {
  EXPECT_EQ(of(view({1, 1, 1, 3}, {1, 1, 1, 2})), (spans{{0, 1}, {2, 1}, {4, 1}}));
}

TEST_F(rows, of_an_empty_box_are_none) {
  EXPECT_TRUE(of(view({1, 0, 1, 4}, {4, 4, 4, 1})).empty());
  EXPECT_TRUE(of(view({1, -1, 1, 4}, {4, 4, 4, 1})).empty());
}

TEST_F(rows, take_packed_bytes_in_their_order_and_leave_what_lies_between) {
  const pieces all = rows_of(view({1, 1, 3, 2}, {300, 300, 10, 1}, 1), sizeof(word));
  const word packed[] = {901, 902, 903, 904, 905, 906};
  copy_into(all, reinterpret_cast<const std::byte*>(packed));
  std::vector<word> expected(1000);
  std::iota(expected.begin(), expected.end(), word{0});
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t i = 0; i < 2; ++i) expected[1 + 10 * row + i] = packed[2 * row + i];
  EXPECT_EQ(memory_, expected);
}

TEST(rows_of_tiles, are_those_of_the_box_within_the_tile) {
  test::host_memory_alone memory;
  test::tiled_matrix m(memory, 8, 10, 4, 10);
  const pieces all = rows_of(*memory.state, m.core, 1, {{5, 2, 0, 0}, {7, 6, 1, 1}}, false);
  EXPECT_EQ(shown(all, host_tile(*memory.state, m.core, 1, false)), (spans{{12, 4}, {22, 4}}));
}

TEST(rows_of_tiles, in_adopted_memory_are_those_of_the_whole_array) {
  test::host_memory_alone memory;
  std::vector<word> mine(8 * 10);
  test::tiled_matrix m(memory, 8, 10, 4, 5);
  m.core.spec.adopted = mine.data();
  const pieces all = rows_of(*memory.state, m.core, 3, m.core.tile_box(3), false);
  EXPECT_EQ(shown(all, mine.data()), (spans{{45, 5}, {55, 5}, {65, 5}, {75, 5}}));
}

TEST(rows_of_tiles, are_filled_unless_all_of_the_tile_will_be_overwritten) {
  test::host_memory_alone memory;
  test::tiled_matrix m(memory, 8, 4, 4, 4);
  const word seven = 7;
  m.core.spec.fill = &seven;
  // A part of the first tile: the rest of the tile will be read.
  const auto tile_at = [&](std::uint32_t t) {
    return reinterpret_cast<const word*>(m.core.bytes[t].data.load(std::memory_order_relaxed));
  };
  rows_of(*memory.state, m.core, 0, {{0, 0, 0, 0}, {1, 4, 1, 1}}, true);
  EXPECT_TRUE(std::all_of(tile_at(0), tile_at(0) + 16, [](word w) { return w == 7; }));
  EXPECT_EQ(memory.host().fills, 1);
  rows_of(*memory.state, m.core, 1, m.core.tile_box(1), true);
  EXPECT_NE(tile_at(1), nullptr);
  EXPECT_EQ(memory.host().fills, 1);
}

}  // namespace
