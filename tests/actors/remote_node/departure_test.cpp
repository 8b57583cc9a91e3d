// What this file is for: a departure knows what is being saved, and which host accesses are to be closed and given
// back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/departure.hpp"

#include <gtest/gtest.h>

namespace {

using troupe::detail::departure;
using troupe::detail::task_record;

TEST(departure, begins_once_and_ends_once) {
  departure d;
  EXPECT_FALSE(d.is_under_way());
  EXPECT_FALSE(d.end());
  EXPECT_TRUE(d.begin());
  EXPECT_FALSE(d.begin());
  EXPECT_TRUE(d.is_under_way());
  EXPECT_TRUE(d.end());
  EXPECT_FALSE(d.is_under_way());
}

TEST(departure, lets_the_node_refuse_tasks_until_another_one_has_joined) {
  departure d;
  EXPECT_FALSE(d.refuses());
  d.begin();
  EXPECT_TRUE(d.refuses());
  d.end();
  EXPECT_TRUE(d.refuses()) << "it has been released, and has not gone";
  d.forget();
  EXPECT_FALSE(d.refuses());
}

TEST(departure, knows_the_last_tile_that_is_saved) {
  departure d;
  d.begin_saving(3);
  EXPECT_FALSE(d.end_saving(1));
  EXPECT_TRUE(d.is_saving());
  EXPECT_TRUE(d.end_saving(2));
  EXPECT_FALSE(d.is_saving());
}

TEST(departure, gives_host_accesses_to_close_and_then_to_give_back) {
  departure d;
  task_record one, two;
  d.add(one, 5, 1);
  d.add(two, 6, 2);
  d.granted(two);
  auto p = d.take();
  EXPECT_EQ(p.to_close, std::vector<task_record*>{&two});
  EXPECT_TRUE(p.ended.empty());
  d.retired(two);
  d.retired(one);  // in error: it was never granted
  p = d.take();
  EXPECT_TRUE(p.to_close.empty());
  ASSERT_EQ(p.ended.size(), 2u);
  EXPECT_EQ(p.ended[0].task, &two);
  EXPECT_EQ(p.ended[0].array, 6u);
  EXPECT_EQ(p.ended[1].tile, 1u);
  EXPECT_TRUE(d.take().ended.empty());
}

}  // namespace
