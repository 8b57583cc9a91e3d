// What this file is for: transfers are found by record, and by number while they await bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/transfer_table.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe::detail;

struct transfers_test : testing::Test {
  transfer& add(task_record& t, std::uint64_t number) {
    auto x = std::make_unique<transfer>();
    x->task = &t;
    x->number = number;
    return all.add(std::move(x));
  }
  transfer_table all;
  task_record a, b;
};

TEST_F(transfers_test, are_found_by_record_until_they_are_removed) {
  transfer& x = add(a, 1);
  EXPECT_EQ(all.of(&a), &x);
  EXPECT_EQ(all.of(&b), nullptr);
  EXPECT_FALSE(all.empty());
  all.remove(x);
  EXPECT_EQ(all.of(&a), nullptr);
  EXPECT_TRUE(all.empty());
}

TEST_F(transfers_test, are_found_by_number_while_they_await_bytes) {
  transfer &x = add(a, all.next_number()), &y = add(b, all.next_number());
  EXPECT_NE(x.number, y.number);
  EXPECT_EQ(all.awaiting(x.number), nullptr);
  all.await(x), all.await(y);
  EXPECT_EQ(all.awaiting(x.number), &x);
  all.await_no_more(x);
  EXPECT_EQ(all.awaiting(x.number), nullptr);
  EXPECT_EQ(all.awaiting(y.number), &y);
}

TEST_F(transfers_test, await_bytes_no_more_but_for_those_that_are_kept) {
  transfer &x = add(a, 1), &y = add(b, 2);
  all.await(x), all.await(y);
  y.placed = true;
  all.await_only([](const transfer& t) { return t.placed; });
  EXPECT_EQ(all.awaiting(1), nullptr);
  EXPECT_EQ(all.awaiting(2), &y);
}

}  // namespace
