// What this file is for: pushes are bounded, numbered, and dropped with the job that they belong to.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/pushes.hpp"

#include <gtest/gtest.h>

namespace {

using troupe::detail::pushes;
namespace wire = troupe::detail::wire;

struct pushes_test : testing::Test {
  pushes_test() { all.allow(true); }
  static constexpr std::uint64_t box = 1u << 20;
  /// Adds pushes until none fits; returns how many there were.
  std::size_t fill(std::uint64_t bytes) {
    std::size_t n = 0;
    for (; all.fits(bytes); ++n) all.add(nullptr, 1, bytes, {});
    return n;
  }
  pushes all;
};

TEST_F(pushes_test, go_only_where_they_are_allowed) {
  EXPECT_FALSE(pushes{}.fits(8));
  EXPECT_TRUE(all.fits(8));
  all.allow(false);
  EXPECT_FALSE(all.fits(8));
}

TEST_F(pushes_test, are_of_small_boxes_and_bounded_together) {
  EXPECT_TRUE(all.fits(box));
  EXPECT_FALSE(all.fits(box + 1));
  EXPECT_EQ(fill(box), wire::pushed_bytes_max / box);
  EXPECT_FALSE(all.fits(1));
  all.ended(box);
  EXPECT_TRUE(all.fits(box));
}

TEST_F(pushes_test, of_tiny_boxes_count_as_four_kilobytes) { EXPECT_EQ(fill(1), wire::pushed_bytes_max / 4096); }

TEST_F(pushes_test, have_numbers_of_their_own_and_begin_once) {
  EXPECT_EQ(all.add(nullptr, 7, 8, {}), 1u);
  EXPECT_EQ(all.add(nullptr, 9, 16, {}), 2u);
  const auto begun = all.take();
  ASSERT_EQ(begun.size(), 2u);
  EXPECT_EQ(begun[0].job, 7u);
  EXPECT_EQ(begun[1].bytes, 16u);
  EXPECT_NE(begun[0].head, begun[1].head);
  EXPECT_TRUE(all.take().empty());
}

TEST_F(pushes_test, are_dropped_with_their_job) {
  fill(box);  // of job 1
  const std::size_t most = all.take().size();
  for (std::size_t i = 0; i < most; ++i) all.ended(box);
  all.add(nullptr, 2, box, {});
  all.add(nullptr, 3, box, {});
  all.drop(2);
  EXPECT_EQ(fill(box), most - 1);  // the room of one is free again
  const auto left = all.take();
  ASSERT_EQ(left.size(), most);
  EXPECT_EQ(left[0].job, 3u);
}

TEST_F(pushes_test, are_all_dropped_when_the_session_ends) {
  const std::size_t most = fill(box);
  all.drop_all();
  EXPECT_TRUE(all.take().empty());
  EXPECT_EQ(fill(box), most);
}

}  // namespace
