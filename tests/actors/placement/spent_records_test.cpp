// What this file is for: records that are given back as one chain are in the pool again, each once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <set>

#include "actors/memory/shard_pool.hpp"
#include "actors/placement/spent_records.hpp"

namespace {

using troupe::detail::shard_pool;
using troupe::detail::spent_records;
using troupe::detail::task_record;

TEST(spent_records, go_back_to_their_pool_together) {
  shard_pool<task_record> pool;
  spent_records spent;
  std::set<task_record*> taken;
  for (int i = 0; i < 100; ++i) taken.insert(pool.take());
  ASSERT_EQ(taken.size(), 100u);
  ASSERT_EQ(pool.in_use(), 100u);
  for (task_record* t : taken) spent.add(*t);
  EXPECT_EQ(spent.count(), 100u);
  EXPECT_EQ(pool.in_use(), 100u) << "not before they are given back";
  spent.give_back(pool);
  EXPECT_EQ(spent.count(), 0u);
  EXPECT_EQ(pool.in_use(), 0u);
  spent.give_back(pool);  // nothing
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(spent_records, can_be_taken_from_the_pool_again_each_once) {
  shard_pool<task_record> pool;
  spent_records spent;
  for (int i = 0; i < 3; ++i) spent.add(*pool.take());
  spent.give_back(pool);
  std::set<task_record*> again;
  for (int i = 0; i < 200; ++i) again.insert(pool.take());
  EXPECT_EQ(again.size(), 200u);
  for (task_record* t : again) spent.add(*t);
  spent.give_back(pool);
  EXPECT_EQ(pool.in_use(), 0u);
}

}  // namespace
