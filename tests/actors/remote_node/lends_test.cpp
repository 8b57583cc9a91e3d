// What this file is for: boxes are ordered from the lenders of a task; orders wait for their tile, or are refused.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/lends.hpp"

#include <gtest/gtest.h>

namespace {

using troupe::detail::array_core;
using troupe::detail::lend_order;
using troupe::detail::lends;
using troupe::detail::promise;

struct lends_test : testing::Test {
  lends_test() {
    a.id = 5;
    all.begin_task();
    all.add_lender(&a, 2, 7, 3, {});
  }
  static lend_order order(std::uint64_t number) {
    lend_order o;
    o.number = number;
    return o;
  }
  static bool never(const lend_order&) { return false; }
  array_core a, other;
  lends all;
};

TEST_F(lends_test, are_ordered_from_the_lender_of_the_tile) {
  EXPECT_TRUE(all.has_lender(a, 2));
  EXPECT_FALSE(all.has_lender(a, 1));
  EXPECT_FALSE(all.has_lender(other, 2));
  all.order(a, 2, {}, 11, 4);
  const lends::news n = all.take();
  ASSERT_EQ(n.orders.size(), 1u);
  EXPECT_EQ(n.orders[0].lender, 3);
  EXPECT_EQ(n.orders[0].borrower, 4);
  EXPECT_EQ(n.orders[0].number, 11u);
  EXPECT_EQ(n.orders[0].array, 5u);
  EXPECT_EQ(n.orders[0].version, 7u);
  EXPECT_TRUE(all.take().orders.empty());
}

TEST_F(lends_test, of_one_task_are_not_those_of_the_next) {
  all.begin_task();
  EXPECT_FALSE(all.has_lender(a, 2));
}

TEST_F(lends_test, wait_while_tasks_are_queued_and_are_refused_then) {
  all.wait(order(1));
  all.wait(order(2));
  all.retry(true, [](const lend_order& o) { return o.number == 1; });
  EXPECT_TRUE(all.take().refused.empty());
  int tried = 0;
  all.retry(false, [&](const lend_order&) {
    ++tried;
    return false;
  });
  EXPECT_EQ(tried, 1);  // the first has been told
  const lends::news n = all.take();
  ASSERT_EQ(n.refused.size(), 1u);
  EXPECT_EQ(n.refused[0].number, 2u);
  all.retry(false, never);
  EXPECT_TRUE(all.take().refused.empty());
}

TEST_F(lends_test, that_their_borrower_gave_up_are_not_refused) {
  all.wait(order(1));
  all.forget(1);
  all.retry(false, never);
  EXPECT_TRUE(all.take().refused.empty());
}

TEST_F(lends_test, are_refused_when_the_node_goes) {
  all.wait(order(1));
  all.refuse_waiting();
  EXPECT_EQ(all.take().refused.size(), 1u);
}

TEST_F(lends_test, that_are_given_up_are_told_once) {
  all.give_up(3, 11);
  const auto told = all.take().given_up;
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].first, 3);
  EXPECT_EQ(told[0].second, 11u);
  EXPECT_TRUE(all.take().given_up.empty());
}

TEST_F(lends_test, that_are_promised_are_taken_once_by_the_task_that_is_encoded) {
  promise p;
  p.array = &a;
  p.tile = 2;
  p.where = {{0, 0, 0, 0}, {4, 1, 1, 1}};
  p.number = 13;
  EXPECT_FALSE(all.has_promised());
  all.add_promised(p, {});
  EXPECT_TRUE(all.has_promised());
  EXPECT_FALSE(all.take_promised(a, 1, p.where).has_value());
  EXPECT_FALSE(all.take_promised(other, 2, p.where).has_value());
  EXPECT_FALSE(all.take_promised(a, 2, {{0, 0, 0, 0}, {3, 1, 1, 1}}).has_value());
  const auto taken = all.take_promised(a, 2, p.where);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->what.number, 13u);
  EXPECT_FALSE(all.take_promised(a, 2, p.where).has_value());
  all.add_promised(p, {});
  EXPECT_EQ(all.take_unused().size(), 1u);
  EXPECT_FALSE(all.has_promised());
}

TEST_F(lends_test, wait_for_the_task_that_writes_them) {
  const auto of = [](std::uint64_t number, std::uint64_t writer) {
    lend_order o = order(number);
    o.writer = writer;
    return o;
  };
  all.wait_for_writer(of(1, 21));
  all.wait_for_writer(of(2, 21));
  all.wait_for_writer(of(3, 22));
  all.wait_for_writer(of(4, 23));
  all.forget(2);
  EXPECT_TRUE(all.take_waiting_for(20).empty());
  const auto now = all.take_waiting_for(21);
  ASSERT_EQ(now.size(), 1u);
  EXPECT_EQ(now[0].number, 1u);
  EXPECT_TRUE(all.take_waiting_for(21).empty());
  all.refuse_writers();
  EXPECT_EQ(all.take().refused.size(), 2u);
  all.wait_for_writer(of(5, 24));
  all.refuse_waiting();
  EXPECT_EQ(all.take().refused.size(), 1u) << "the node goes";
  all.refuse(of(6, 25));
  EXPECT_EQ(all.take().refused.size(), 1u);
}

}  // namespace
