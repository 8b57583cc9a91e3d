// What this file is for: many tasks on another node that each change another part of a tile, all under way at once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "several_nodes.hpp"

namespace {

using namespace troupe;
using test::several_nodes;
using troupe::index_t;

constexpr auto add_one = kernel<inout<long, 2>>("parts_updated.add_one").on(cpu, [](view<long, 2> a) {
  for (index_t y = a.lo(0); y < a.hi(0); ++y)
    for (index_t x = a.lo(1); x < a.hi(1); ++x) ++a(y, x);
});
const offer offered{add_one};

// Beyond 16 remembered parts the node was sent the whole tile as it was here, over what other tasks had just changed
// there, and what these sent back was that.
TEST(parts_updated, columns_of_several_tiles_all_change_once_each_time) {
  several_nodes n(1, 1);
  for (const index_t columns : {16, 17, 20, 40})
    for (const index_t rows : {1, 2, 1000}) {  // of a tile; a column of the last does not fit into a message
      auto a = n.a.filled({2 * rows, columns}, tiles(rows, columns), 3L);
      for (int round = 1; round <= 5; ++round) {
        n.a.for_each({.where = scope::at("b")}, grid(2 * rows, columns).chunks(2 * rows, 1), add_one, update(a));
        const auto v = a.read();
        int wrong = 0;
        for (index_t y = 0; y < 2 * rows; ++y)
          for (index_t x = 0; x < columns; ++x) wrong += v(y, x) != 3 + round;
        EXPECT_EQ(wrong, 0) << columns << " columns, tiles of " << rows << " rows, round " << round;
      }
    }
}

}  // namespace
