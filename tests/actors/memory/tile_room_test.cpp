// What this file is for: where a tile with room lies, which windows are shown in it, and that its bytes are counted.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/tile_room.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

#include <troupe/error.hpp>

#include "host_arrays.hpp"

namespace {

using namespace troupe::detail;
using test::tiled_matrix;
using troupe::border;
using troupe::logic::box4;
using word = std::uint32_t;
using strides = std::array<troupe::index_t, troupe::rank_max>;

class tile_rooms : public testing::Test {
 protected:
  tile_rooms() { matrix.core.stays_packed = false; }
  static region window(const box4& of, border edge) {
    region r;
    r.lo = of.lo;
    r.hi = of.hi;
    r.limit_hi = {10, 20, 1, 1};
    r.edge = edge;
    return r;
  }
  void want(troupe::index_t rows, troupe::index_t columns) { matrix.core.halo = halo{{rows, columns, 0, 0}}.packed(); }
  runtime_state& rt() { return *memory.state; }
  test::host_memory_alone memory;
  tiled_matrix matrix{memory, 10, 20, 5, 10};
  const box4 first{{0, 0, 0, 0}, {5, 10, 1, 1}}, around{{-1, -1, 0, 0}, {6, 11, 1, 1}};
};

TEST_F(tile_rooms, lie_around_a_tile_that_begins_as_all_do) {
  const tile_room room(rt(), matrix.core, first, {{2, 3, 0, 0}});
  EXPECT_EQ(room.stride(), (strides{16, 1, 1, 1}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room.data()) % troupe::element_align_max, 0u);
  EXPECT_EQ(room.element({0, 0, 0, 0}), room.data());
  EXPECT_EQ(room.element({-2, -3, 0, 0}), room.data() - (2 * 16 + 3) * sizeof(word));
  EXPECT_EQ(room.element({6, 12, 0, 0}), room.data() + (6 * 16 + 12) * sizeof(word));
  EXPECT_GE(room.bytes(), (5 + 4) * 16 * sizeof(word));
  EXPECT_EQ(memory.host().in_use, room.bytes());
}

TEST_F(tile_rooms, have_rows_that_begin_like_the_tile_where_that_takes_little) {
  tiled_matrix wide(memory, 4, 1000, 2, 500);
  const tile_room room(rt(), wide.core, wide.core.tile_box(0), {{1, 1, 0, 0}});
  EXPECT_EQ(room.stride()[0], 512) << "and not 502";
}

TEST_F(tile_rooms, cover_what_reaches_no_farther) {
  const halo one{{1, 2, 0, 255}};
  EXPECT_EQ(halo::of(one.packed()).reach, one.reach);
  EXPECT_TRUE(one.covers({{1, 1, 0, 255}}));
  EXPECT_FALSE(one.covers({{2, 1, 0, 0}}));
  EXPECT_EQ(halo::larger(one.packed(), {{3, 1, 1, 1}}).reach, (strides{3, 2, 1, 255}));
  EXPECT_EQ(halo::between(around, first).reach, (strides{1, 1, 0, 0}));
  EXPECT_EQ(halo::between({{0, -4, 0, 0}, {7, 10, 1, 1}}, first).reach, (strides{2, 4, 0, 0}));
}

TEST_F(tile_rooms, show_one_window_at_a_time_to_all_who_read_it) {
  tile_room room(rt(), matrix.core, first, {{1, 1, 0, 0}});
  int filled = 0;
  const auto fill = [&] { ++filled; };
  EXPECT_TRUE(room.show(matrix.core, window(around, border::wrap), around, fill));
  EXPECT_TRUE(room.show(matrix.core, window(around, border::wrap), around, fill));
  EXPECT_EQ(filled, 1) << "the second one finds it there";
  EXPECT_FALSE(room.show(matrix.core, window(around, border::clamp), around, fill));
  const box4 less{{0, -1, 0, 0}, {6, 11, 1, 1}};
  EXPECT_FALSE(room.show(matrix.core, window(less, border::wrap), less, fill));
  region of_a_part = window(around, border::wrap);
  of_a_part.limit_hi[0] = 5;
  EXPECT_FALSE(room.show(matrix.core, of_a_part, around, fill));
  const tiled_matrix another(memory, 10, 20, 5, 10);
  EXPECT_FALSE(room.show(another.core, window(around, border::wrap), around, fill)) << "its rim comes from elsewhere";
  room.leave();
  EXPECT_FALSE(room.show(matrix.core, window(around, border::clamp), around, fill)) << "one is left";
  room.leave();
  EXPECT_TRUE(room.show(matrix.core, window(around, border::clamp), around, fill));
  room.leave();
  EXPECT_TRUE(room.show(matrix.core, window(around, border::clamp), around, fill));
  EXPECT_EQ(filled, 3) << "nobody has kept it meanwhile, so what it shows may have changed";
}

TEST_F(tile_rooms, tell_constants_apart) {
  tile_room room(rt(), matrix.core, first, {{1, 1, 0, 0}});
  region seven = window(around, border::fill), eight = seven;
  seven.fill[0] = std::byte{7};
  eight.fill[0] = std::byte{8};
  EXPECT_TRUE(room.show(matrix.core, seven, around, [] {}));
  EXPECT_TRUE(room.show(matrix.core, seven, around, [] {}));
  EXPECT_FALSE(room.show(matrix.core, eight, around, [] {}));
}

TEST_F(tile_rooms, show_nothing_where_it_could_not_be_filled) {
  tile_room room(rt(), matrix.core, first, {{1, 1, 0, 0}});
  EXPECT_THROW(room.show(matrix.core, window(around, border::wrap), around, [] { throw std::runtime_error("no"); }),
               std::runtime_error);
  int filled = 0;
  EXPECT_TRUE(room.show(matrix.core, window(around, border::clamp), around, [&] { ++filled; }));
  EXPECT_EQ(filled, 1);
}

TEST_F(tile_rooms, are_made_for_tiles_that_are_overwritten_once_windows_want_them) {
  array_core& a = matrix.core;
  make_room(rt(), a, 0);
  EXPECT_EQ(a.bytes[0].room, nullptr) << "nothing wants it";
  std::byte* const packed = host_tile(rt(), a, 0, true);
  want(1, 1);
  make_room(rt(), a, 0);
  tile_room* const one = a.bytes[0].room;
  ASSERT_NE(one, nullptr);
  EXPECT_NE(host_tile(rt(), a, 0, false), packed);
  EXPECT_EQ(host_tile(rt(), a, 0, false), one->data());
  EXPECT_EQ(host_strides(a, 0), one->stride());
  EXPECT_EQ(host_strides(a, 1), (strides{10, 1, 1, 1}));
  EXPECT_EQ(rt().array_bytes, one->bytes());
  make_room(rt(), a, 0);
  EXPECT_EQ(a.bytes[0].room, one) << "it is large enough";
  want(1, 2);
  make_room(rt(), a, 0);
  EXPECT_EQ(a.bytes[0].room.load()->reach().reach, (strides{1, 2, 0, 0}));
  EXPECT_EQ(rt().array_bytes, a.bytes[0].room.load()->bytes());
  EXPECT_EQ(memory.host().in_use, rt().array_bytes);
  free_host_tile(rt(), a, 0);
  EXPECT_EQ(a.bytes[0].room, nullptr);
  EXPECT_EQ(rt().array_bytes, 0u);
  EXPECT_EQ(memory.host().in_use, 0u);
}

TEST_F(tile_rooms, are_not_made_of_arrays_that_stay_packed_or_without_memory) {
  array_core& a = matrix.core;
  want(1, 1);
  std::byte* const packed = host_tile(rt(), a, 0, true);
  memory.host().full = true;
  make_room(rt(), a, 0);
  EXPECT_EQ(host_tile(rt(), a, 0, false), packed);
  memory.host().full = false;
  want(3, 1);
  make_room(rt(), a, 0);
  EXPECT_EQ(host_tile(rt(), a, 0, false), packed) << "it would take more than the tile";
  want(1, 1);
  a.stays_packed = true;
  make_room(rt(), a, 0);
  EXPECT_EQ(host_tile(rt(), a, 0, false), packed);
  EXPECT_EQ(host_strides(a, 0), (strides{10, 1, 1, 1}));
}

TEST_F(tile_rooms, give_way_to_bytes_from_elsewhere) {
  array_core& a = matrix.core;
  want(1, 1);
  make_room(rt(), a, 0);
  loose_bytes fresh = new_loose_bytes(rt(), a.bytes_of(0));
  std::byte* const at = fresh.get();
  EXPECT_EQ(exchange_host_tile(rt(), a, 0, std::move(fresh)), nullptr) << "what lay there was not packed";
  EXPECT_EQ(host_tile(rt(), a, 0, false), at);
  EXPECT_EQ(host_strides(a, 0), (strides{10, 1, 1, 1}));
  EXPECT_EQ(rt().array_bytes, a.bytes_of(0));
  EXPECT_EQ(take_host_tile(rt(), a, 0).get(), at);
  EXPECT_EQ(rt().array_bytes, 0u);
  EXPECT_EQ(memory.host().in_use, 0u);
}

}  // namespace
