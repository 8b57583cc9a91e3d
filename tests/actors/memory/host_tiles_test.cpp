// What this file is for: a tile's bytes are made once, filled if they will be read, counted, and lie where they should.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/host_tiles.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include <troupe/error.hpp>

#include "host_arrays.hpp"

namespace {

using namespace troupe::detail;
using test::tiled_matrix;
using word = std::uint32_t;

using strides = std::array<troupe::index_t, troupe::rank_max>;

class host_tiles : public testing::Test {
 protected:
  /// Gets the bytes of a tile on many threads at once.
  std::set<std::byte*> raced_for(array_core& a, std::uint32_t tile) {
    std::vector<std::byte*> got(8);
    test::at_once(got.size(), [&](std::size_t i) { got[i] = host_tile(rt(), a, tile, true); });
    return {got.begin(), got.end()};
  }
  runtime_state& rt() { return *memory_.state; }
  test::counted_host& host() { return memory_.host(); }
  test::host_memory_alone memory_;
};

TEST_F(host_tiles, are_made_by_the_first_who_asks_and_counted) {
  {
    tiled_matrix m(memory_, 10, 6, 4, 6);  // the last tile has two rows
    std::byte* const first = host_tile(rt(), m.core, 0, true);
    EXPECT_EQ(host_tile(rt(), m.core, 0, false), first);
    EXPECT_EQ(rt().array_bytes, 4 * 6 * sizeof(word));
    EXPECT_NE(host_tile(rt(), m.core, 2, true), first);
    EXPECT_EQ(rt().array_bytes, (4 + 2) * 6 * sizeof(word));
    EXPECT_EQ(host().in_use, rt().array_bytes);
    free_host_tile(rt(), m.core, 0);
    EXPECT_EQ(rt().array_bytes, 2 * 6 * sizeof(word));
    EXPECT_EQ(rt().array_bytes_max, (4 + 2) * 6 * sizeof(word));
  }
  EXPECT_EQ(rt().array_bytes, 0u);
  EXPECT_EQ(host().in_use, 0u);
}

TEST_F(host_tiles, are_filled_unless_all_of_them_will_be_overwritten) {
  tiled_matrix m(memory_, 2, 3, 1, 3);
  const word seven = 7;
  m.core.spec.fill = &seven;
  const auto* const filled = reinterpret_cast<const word*>(host_tile(rt(), m.core, 0, false));
  EXPECT_EQ(std::vector<word>(filled, filled + 3), (std::vector<word>{7, 7, 7}));
  auto* const mine = reinterpret_cast<word*>(host_tile(rt(), m.core, 1, true));
  mine[1] = 8;
  EXPECT_EQ(reinterpret_cast<const word*>(host_tile(rt(), m.core, 1, false))[1], 8u) << "later calls fill nothing";
}

TEST_F(host_tiles, of_adopted_memory_lie_in_it) {
  std::vector<word> mine(6 * 8);
  tiled_matrix m(memory_, 6, 8, 3, 4);
  m.core.spec.adopted = mine.data();
  EXPECT_EQ(host_tile(rt(), m.core, 0, false), reinterpret_cast<std::byte*>(&mine[0]));
  EXPECT_EQ(host_tile(rt(), m.core, 1, false), reinterpret_cast<std::byte*>(&mine[4]));
  EXPECT_EQ(host_tile(rt(), m.core, 2, false), reinterpret_cast<std::byte*>(&mine[3 * 8]));
  EXPECT_EQ(host_tile(rt(), m.core, 3, true), reinterpret_cast<std::byte*>(&mine[3 * 8 + 4]));
  EXPECT_EQ(host().allocations, 0);
  EXPECT_EQ(rt().array_bytes, 0u);
}

TEST_F(host_tiles, have_rows_of_their_own_or_those_of_the_adopted_memory) {
  tiled_matrix m(memory_, 6, 8, 3, 5);
  EXPECT_EQ(host_strides(m.core, 0), (strides{5, 1, 1, 1}));
  EXPECT_EQ(host_strides(m.core, 1), (strides{3, 1, 1, 1})) << "the last column of tiles is narrower";
  EXPECT_EQ(packed_strides(m.core.tile_box(1)), (strides{3, 1, 1, 1}));
  word mine[6 * 8];
  m.core.spec.adopted = mine;
  EXPECT_EQ(host_strides(m.core, 1), (strides{8, 1, 1, 1}));
  EXPECT_EQ(packed_strides({{1, 2, 3, 4}, {2, 5, 7, 9}}), (strides{3 * 4 * 5, 4 * 5, 5, 1}));
}

TEST_F(host_tiles, are_the_same_for_threads_that_ask_together) {
  tiled_matrix m(memory_, 40, 2, 1, 2);
  for (std::uint32_t t = 0; t < m.core.tile_count; ++t) EXPECT_EQ(raced_for(m.core, t).size(), 1u);
  EXPECT_EQ(rt().array_bytes, 40 * 2 * sizeof(word));
  EXPECT_EQ(host().in_use, rt().array_bytes) << "who came too late has given its bytes back";
}

TEST_F(host_tiles, are_allocated_by_one_thread_alone_under_a_budget) {
  rt().bounded = true;
  tiled_matrix m(memory_, 40, 2, 1, 2);
  for (std::uint32_t t = 0; t < m.core.tile_count; ++t) EXPECT_EQ(raced_for(m.core, t).size(), 1u);
  EXPECT_EQ(host().allocations, 40);
}

TEST_F(host_tiles, that_get_no_memory_are_as_they_were) {
  tiled_matrix m(memory_, 2, 2, 1, 2);
  host().full = true;
  EXPECT_THROW(host_tile(rt(), m.core, 0, true), troupe::error);
  EXPECT_EQ(rt().array_bytes, 0u);
  host().full = false;
  EXPECT_NE(host_tile(rt(), m.core, 0, true), nullptr);
  EXPECT_EQ(rt().array_bytes, 2 * sizeof(word));
}

TEST_F(host_tiles, can_be_taken_out_and_go_with_who_has_taken_them) {
  tiled_matrix m(memory_, 2, 2, 1, 2);
  std::byte* const bytes = host_tile(rt(), m.core, 0, true);
  {
    const loose_bytes taken = take_host_tile(rt(), m.core, 0);
    EXPECT_EQ(taken.get(), bytes);
    EXPECT_EQ(rt().array_bytes, 0u) << "they are no array's any more";
    EXPECT_EQ(host().in_use, 2 * sizeof(word));
  }
  EXPECT_EQ(host().in_use, 0u);
  EXPECT_FALSE(take_host_tile(rt(), m.core, 0)) << "there are none";
}

TEST_F(host_tiles, can_be_exchanged_for_others) {
  tiled_matrix m(memory_, 2, 2, 1, 2);
  loose_bytes first = new_loose_bytes(rt(), m.core.bytes_of(0)), second = new_loose_bytes(rt(), m.core.bytes_of(0));
  std::byte* const at_first = first.get();
  std::byte* const then = second.get();
  EXPECT_EQ(rt().array_bytes, 0u);
  EXPECT_FALSE(exchange_host_tile(rt(), m.core, 0, std::move(first)));
  EXPECT_EQ(host_tile(rt(), m.core, 0, false), at_first);
  EXPECT_EQ(rt().array_bytes, 2 * sizeof(word));
  EXPECT_EQ(exchange_host_tile(rt(), m.core, 0, std::move(second)).get(), at_first);
  EXPECT_EQ(host_tile(rt(), m.core, 0, false), then);
  EXPECT_EQ(rt().array_bytes, 2 * sizeof(word)) << "one tile has bytes, as before";
  EXPECT_EQ(host().in_use, 2 * sizeof(word)) << "the first ones are gone";
}

}  // namespace
