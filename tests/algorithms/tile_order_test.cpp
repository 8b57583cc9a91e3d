// What this file is for: blocks of tiles that fit into little memory.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/tile_order.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe;
using namespace troupe::algorithms;
using troupe::index_t;

index_t parts(index_t whole, index_t part) { return (whole + part - 1) / part; }

TEST(tile_order, a_product_that_fits_is_one_block) {
  const product_block b = product_block_for(5, 7, 3, 5 * 7 + (5 + 7) * 3);
  EXPECT_EQ(b.height, 5);
  EXPECT_EQ(b.width, 7);
}

TEST(tile_order, a_block_of_a_product_has_room_with_a_row_and_a_tile_that_pass_by) {
  for (index_t m = 1; m <= 12; ++m)
    for (index_t n = 1; n <= 12; ++n)
      for (index_t room = 1; room < m * n + (m + n) * 4; room += 3) {
        const product_block b = product_block_for(m, n, 4, room);
        ASSERT_GE(b.height, 1);
        ASSERT_GE(b.width, 1);
        ASSERT_LE(b.height, m);
        ASSERT_LE(b.width, n);
        ASSERT_TRUE(b.height * b.width == 1 || b.height * b.width + b.width + 1 <= room) << m << ", " << n;
      }
}

// The reads of all blocks, summed up: with a quarter of the room the factors come in one and a half times.
TEST(tile_order, blocks_of_a_product_are_chosen_for_few_reads) {
  for (index_t n : {8, 12, 16, 24, 32}) {
    const product_block b = product_block_for(n, n, n, 3 * n * n / 4);
    EXPECT_LE(n * n * parts(n, b.width) + n * n * parts(n, b.height), n * n * 3) << n;
  }
}

TEST(tile_order, blocks_of_a_factorisation_have_room_with_two_strips) {
  for (index_t n = 1; n <= 60; ++n)
    for (index_t room = 1; room <= 1000; room += 7) {
      const index_t p = cholesky_block_for(n, room);
      ASSERT_GE(p, 1);
      ASSERT_LE(p, n);
      ASSERT_TRUE(p == 1 || p * p + 2 * p <= room) << n;
    }
}

TEST(tile_order, memory_is_scarce_where_a_device_of_the_scope_has_less_than_is_needed) {
  options o{.threads = 1};
  o.devices = {{"sim:0", 1 << 20}, {"sim:1", 2 << 20}};
  o.cost_cache = "none";
  runtime rt(o);
  EXPECT_EQ(scarce_memory(rt, {}, 3 << 20), 1u << 20);
  EXPECT_EQ(scarce_memory(rt, {}, 1 << 20), 0u);
  EXPECT_EQ(scarce_memory(rt, scope::executor("sim:1"), 3 << 20), 2u << 20);
  EXPECT_EQ(scarce_memory(rt, scope::cpu(), 3 << 20), 0u);
}

}  // namespace
