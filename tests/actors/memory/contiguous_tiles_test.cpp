// What this file is for: which arrays have their tiles in one piece of memory, and that tiles come and go in it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/contiguous_tiles.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "host_arrays.hpp"

namespace {

using namespace troupe::detail;
using test::tiled_matrix;
using troupe::index_t;
using word = std::uint32_t;

/// A device that gains by pinned memory.
class pins_all final : public troupe::devices::page_pinning {
 public:
  outcome pin(std::byte*, std::size_t) override { return outcome::pinned; }
  void unpin(std::byte*) noexcept override {}
};

class contiguous_tiles : public testing::Test {
 protected:
  runtime_state& rt() { return *memory.state; }
  // A matrix whose tiles have places where the geometry allows it.
  struct rows : tiled_matrix {
    rows(test::host_memory_alone& m, index_t size, index_t columns, index_t tile_rows, index_t tile_columns)
        : tiled_matrix(m, size, columns, tile_rows, tile_columns), rt(*m.state) {
      core.tile_bytes_max = static_cast<std::size_t>(tile_rows * tile_columns) * sizeof(word);
      core.stays_packed = false;
      core.places = first_placing(rt, core);
    }
    ~rows() { free_host_tiles(rt, core); }
    runtime_state& rt;
  };
  bool could_be(index_t size, index_t columns, index_t tile_rows, index_t tile_columns) {
    return rows(memory, size, columns, tile_rows, tile_columns).core.places == placing::always;
  }
  test::host_memory_alone memory;
};

TEST_F(contiguous_tiles, are_cut_along_the_first_dimension_that_is_longer_than_one) {
  EXPECT_TRUE(could_be(10, 16, 4, 16));
  EXPECT_TRUE(could_be(1, 100, 1, 16)) << "nothing lies before the second dimension";
  EXPECT_FALSE(could_be(10, 16, 10, 16)) << "one tile";
  EXPECT_FALSE(could_be(10, 32, 5, 16)) << "columns are cut too";
  EXPECT_FALSE(could_be(10, 32, 10, 16)) << "columns are cut";
  EXPECT_FALSE(could_be(10, 17, 4, 17)) << "the second tile would begin between cache lines";
}

TEST_F(contiguous_tiles, lie_one_behind_the_other_and_are_counted_each) {
  {
    rows m(memory, 10, 16, 4, 16);  // the last tile has two rows
    std::byte* const second = host_tile(rt(), m.core, 1, true);
    EXPECT_EQ(rt().array_bytes, 4 * 16 * sizeof(word));
    EXPECT_EQ(memory.host().in_use, 10 * 16 * sizeof(word)) << "memory for all of them";
    EXPECT_EQ(host_tile(rt(), m.core, 0, true), second - 4 * 16 * sizeof(word));
    EXPECT_EQ(host_tile(rt(), m.core, 2, true), second + 4 * 16 * sizeof(word));
    EXPECT_EQ(rt().array_bytes, 10 * 16 * sizeof(word));
    EXPECT_EQ(memory.host().allocations, 1);
    EXPECT_FALSE(owns_its_bytes(m.core, 1));
    EXPECT_TRUE(is_in_place(m.core, 1, second));
    EXPECT_FALSE(is_in_place(m.core, 0, second));
  }
  EXPECT_EQ(rt().array_bytes, 0u);
  EXPECT_EQ(memory.host().in_use, 0u);
}

TEST_F(contiguous_tiles, leave_their_place_and_find_it_again) {
  rows m(memory, 2048, 16, 1024, 16);  // 64 KiB each
  host_tile(rt(), m.core, 0, true);
  const word seven = 7;
  m.core.spec.fill = &seven;
  std::byte* const at = host_tile(rt(), m.core, 1, false);
  EXPECT_EQ(take_host_tile(rt(), m.core, 1), nullptr) << "there is nothing to be taken";
  EXPECT_EQ(rt().array_bytes, m.core.bytes_of(0));
  EXPECT_EQ(host_tile(rt(), m.core, 1, false), at);
  std::vector<word> now(1024 * 16);
  std::memcpy(now.data(), at, m.core.bytes_of(1));
  EXPECT_EQ(now, std::vector<word>(1024 * 16, 7)) << "filled anew";
}

TEST_F(contiguous_tiles, of_arrays_that_others_use_lie_elsewhere_until_that_is_missed) {
  rows m(memory, 2048, 16, 1024, 16);
  host_tile(rt(), m.core, 0, true);
  std::byte* const at = host_tile(rt(), m.core, 1, true);
  m.core.place_if_missed();
  loose_bytes other = new_loose_bytes(rt(), m.core.bytes_of(1));
  std::byte* const elsewhere = other.get();
  EXPECT_EQ(exchange_host_tile(rt(), m.core, 1, std::move(other)), nullptr);
  EXPECT_EQ(host_tile(rt(), m.core, 1, false), elsewhere);
  EXPECT_TRUE(owns_its_bytes(m.core, 1));
  EXPECT_EQ(take_host_tile(rt(), m.core, 1).get(), elsewhere);
  EXPECT_NE(host_tile(rt(), m.core, 1, true), at);
  EXPECT_TRUE(owns_its_bytes(m.core, 1));

  m.core.miss_places();
  loose_bytes more = new_loose_bytes(rt(), m.core.bytes_of(1));
  std::memset(more.get(), 5, m.core.bytes_of(1));
  EXPECT_TRUE(exchange_host_tile(rt(), m.core, 1, std::move(more))) << "what lay elsewhere";
  EXPECT_EQ(host_tile(rt(), m.core, 1, false), at);
  EXPECT_EQ(std::vector<std::byte>(at, at + m.core.bytes_of(1)),
            std::vector<std::byte>(m.core.bytes_of(1), std::byte{5}));
  EXPECT_EQ(rt().array_bytes, 2 * m.core.bytes_of(1));
}

TEST_F(contiguous_tiles, move_to_their_places_when_they_are_overwritten) {
  rows m(memory, 8, 16, 4, 16);
  m.core.place_if_missed();
  std::byte* const before = host_tile(rt(), m.core, 0, true);
  move_to_place(rt(), m.core, 0);
  EXPECT_EQ(host_tile(rt(), m.core, 0, true), before) << "nobody has missed it";
  m.core.miss_places();
  move_to_place(rt(), m.core, 0);
  EXPECT_TRUE(is_in_place(m.core, 0, host_tile(rt(), m.core, 0, true)));
  EXPECT_EQ(rt().array_bytes, m.core.bytes_of(0));
  EXPECT_EQ(memory.host().in_use, 8 * 16 * sizeof(word)) << "its old bytes are freed";
  move_to_place(rt(), m.core, 1);
  EXPECT_EQ(rt().array_bytes, m.core.bytes_of(0)) << "a tile without bytes gets none";
}

TEST_F(contiguous_tiles, take_their_memory_with_them_when_the_last_one_leaves) {
  rows m(memory, 8, 16, 4, 16);
  host_tile(rt(), m.core, 0, true);
  host_tile(rt(), m.core, 1, true);
  free_host_tile(rt(), m.core, 0);
  EXPECT_EQ(memory.host().in_use, 8 * 16 * sizeof(word));
  free_host_tile(rt(), m.core, 1);
  EXPECT_EQ(memory.host().in_use, 0u);
  EXPECT_TRUE(is_in_place(m.core, 1, host_tile(rt(), m.core, 1, true))) << "it comes back";
}

TEST_F(contiguous_tiles, of_large_arrays_lie_in_mapped_memory) {
  for (const index_t rows_of_tile : {index_t{2048}, index_t{40'000}}) {  // the second one in large pages
    rows m(memory, 16 * rows_of_tile + 5, 16, rows_of_tile, 16);
    for (std::uint32_t t = 0; t < m.core.tile_count; ++t)
      std::memset(host_tile(rt(), m.core, t, true), 1, m.core.bytes_of(t));
    EXPECT_EQ(memory.host().allocations, 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(host_tile(rt(), m.core, 0, true)) % troupe::element_align_max, 0u);
    EXPECT_EQ(rt().array_bytes, static_cast<std::size_t>(16 * rows_of_tile + 5) * 16 * sizeof(word));
    for (std::uint32_t t = 0; t < m.core.tile_count; ++t) free_host_tile(rt(), m.core, t);
    EXPECT_EQ(m.core.piece, nullptr);
    host_tile(rt(), m.core, 1, true);
    free_host_tiles(rt(), m.core);
    EXPECT_EQ(rt().array_bytes, 0u);
  }
}

TEST_F(contiguous_tiles, share_one_piece_whoever_comes_first) {
  for (int round = 0; round < 50; ++round) {
    rows m(memory, 8 * 4, 16, 4, 16);
    memory.host().allocations = 0;
    test::at_once(8, [&](std::size_t t) { host_tile(rt(), m.core, static_cast<std::uint32_t>(t), true); });
    EXPECT_EQ(memory.host().allocations, 1);
    EXPECT_EQ(m.core.in_place, 8u);
  }
}

TEST_F(contiguous_tiles, are_pinned_as_a_whole_only_once_that_is_missed) {
  rt().tiles = std::make_unique<tile_memory>(memory.host());
  std::vector<std::unique_ptr<troupe::devices::page_pinning>> one;
  one.push_back(std::make_unique<pins_all>());
  rt().tiles->pin_for(std::move(one), 1 << 26);
  {
    rows m(memory, 64, 16, 4, 16);
    host_tile(rt(), m.core, 0, true);
    EXPECT_TRUE(owns_its_bytes(m.core, 0));
    m.core.miss_places();
    host_tile(rt(), m.core, 1, true);
    EXPECT_FALSE(owns_its_bytes(m.core, 1));
  }
  rt().tiles->unpin_all();
}

TEST_F(contiguous_tiles, give_back_the_pages_that_they_leave) {
  rows m(memory, 2048, 16, 1024, 16);
  std::byte* const at = host_tile(rt(), m.core, 0, true);
  std::byte* const next = host_tile(rt(), m.core, 1, true);
  std::memset(at, 1, m.core.bytes_of(0));
  std::memset(next, 2, m.core.bytes_of(1));
  free_host_tile(rt(), m.core, 0);
  EXPECT_EQ(at[8192], std::byte{0}) << "a page of its own is the system's";
  EXPECT_EQ(next[0], std::byte{2}) << "the page of two tiles is not";
}

TEST_F(contiguous_tiles, are_filled_once_by_whoever_comes_first) {
  for (int round = 0; round < 50; ++round) {
    rows m(memory, 64, 16, 16, 16);
    const word seven = 7;
    m.core.spec.fill = &seven;
    memory.host().fills = 0;
    const auto tile = static_cast<std::uint32_t>(round % 4);
    std::vector<std::byte*> got(6);
    test::at_once(got.size(), [&](std::size_t i) { got[i] = host_tile(rt(), m.core, tile, false); });
    EXPECT_EQ(std::set<std::byte*>(got.begin(), got.end()).size(), 1u);
    EXPECT_EQ(memory.host().fills, 1);
    EXPECT_EQ(rt().array_bytes, m.core.bytes_of(tile));
  }
  EXPECT_EQ(memory.host().in_use, 0u);
}

TEST_F(contiguous_tiles, are_apart_where_there_is_no_memory_for_all_or_others_use_the_array) {
  rows m(memory, 8, 16, 4, 16);
  memory.host().full = true;
  EXPECT_EQ(take_place(rt(), m.core, 0), nullptr);
  memory.host().full = false;
  EXPECT_TRUE(host_tile(rt(), m.core, 0, true));
  EXPECT_TRUE(owns_its_bytes(m.core, 0)) << "it is not tried again";

  rows far(memory, 8, 16, 4, 16);
  far.core.place_if_missed();
  EXPECT_TRUE(host_tile(rt(), far.core, 0, true));
  EXPECT_TRUE(owns_its_bytes(far.core, 0));
}

TEST_F(contiguous_tiles, may_get_room_around_them_instead) {
  rows m(memory, 64, 64, 32, 64);
  std::byte* const place = host_tile(rt(), m.core, 0, true);
  m.core.halo = 1;  // one row
  make_room(rt(), m.core, 0);
  EXPECT_NE(host_tile(rt(), m.core, 0, false), place);
  EXPECT_FALSE(is_in_place(m.core, 0, host_tile(rt(), m.core, 0, false)));
  EXPECT_FALSE(owns_its_bytes(m.core, 0));
  EXPECT_EQ(m.core.piece, nullptr) << "no tile is in its place";
  free_host_tile(rt(), m.core, 0);
  EXPECT_TRUE(is_in_place(m.core, 0, host_tile(rt(), m.core, 0, true)));
}

}  // namespace
