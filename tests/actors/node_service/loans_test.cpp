// What this file is for: a loan, its pull and the word that takes it back come in any order, and each once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/loans.hpp"

#include <gtest/gtest.h>

#include <troupe/error.hpp>

namespace {

using namespace troupe::detail;

borrower puller(std::uint64_t number, std::uint64_t lent) {
  borrower b;
  b.number = number;
  b.lent = lent;
  return b;
}

template <class F>
bool is_refused(F&& f) {
  try {
    f();
  } catch (const troupe::error& e) {
    return e.code() == troupe::errc::protocol_error;
  }
  return false;
}

struct loans_test : testing::Test {
  loans all;
  transfer x, y;
};

TEST_F(loans_test, are_given_to_who_pulls_them) {
  ASSERT_TRUE(all.wants(1));
  all.add(1, x);
  EXPECT_FALSE(x.whom);
  const auto p = all.pull(puller(70, 1), false);
  EXPECT_EQ(p.from, &x);
  ASSERT_TRUE(x.whom);
  EXPECT_EQ(x.whom->number, 70u);
}

TEST_F(loans_test, wait_for_nothing_when_they_were_pulled_before_they_came) {
  const auto p = all.pull(puller(70, 1), false);
  EXPECT_EQ(p.from, nullptr);
  EXPECT_TRUE(p.waits);
  all.add(1, x);
  ASSERT_TRUE(x.whom);
  EXPECT_EQ(x.whom->number, 70u);
}

TEST_F(loans_test, are_pulled_once) {
  all.add(1, x);
  all.pull(puller(70, 1), false);
  EXPECT_TRUE(is_refused([&] { all.pull(puller(71, 1), false); }));
  all.pull(puller(80, 2), false);
  EXPECT_TRUE(is_refused([&] { all.pull(puller(81, 2), false); })) << "before it came";
}

TEST_F(loans_test, have_a_number_each) {
  all.add(1, x);
  EXPECT_TRUE(is_refused([&] { all.wants(1); }));
  all.remove(1);
  EXPECT_TRUE(all.wants(1));
}

TEST_F(loans_test, that_are_taken_back_end) {
  all.add(1, x);
  const auto t = all.take_back(1);
  EXPECT_EQ(t.loan, &x);
  EXPECT_FALSE(t.too_early);
}

TEST_F(loans_test, that_are_taken_back_before_they_came_are_not_kept) {
  EXPECT_EQ(all.take_back(1).loan, nullptr);
  EXPECT_FALSE(all.wants(1));
  const auto p = all.pull(puller(70, 1), false);
  EXPECT_FALSE(p.waits) << "it is turned away";
  EXPECT_EQ(p.from, nullptr);
}

TEST_F(loans_test, that_are_taken_back_have_those_turned_away_who_wait) {
  all.pull(puller(70, 1), false);
  const auto t = all.take_back(1);
  ASSERT_TRUE(t.too_early);
  EXPECT_EQ(t.too_early->number, 70u);
  EXPECT_TRUE(all.wants(1)) << "the word has been used";
}

TEST_F(loans_test, are_not_waited_for_when_their_owner_has_gone) {
  EXPECT_FALSE(all.pull(puller(70, 1), true).waits);
  all.pull(puller(71, 2), false);
  const auto early = all.take_early();
  ASSERT_EQ(early.size(), 1u);
  EXPECT_EQ(early.at(2).number, 71u);
  EXPECT_TRUE(all.take_early().empty());
}

TEST_F(loans_test, are_not_kept_for_a_node_that_has_gone) {
  all.pull(puller(70, 1), false);
  all.pull(puller(71, 2), false);
  all.forget_early([](const borrower& b) { return b.number == 70; });
  all.add(1, x), all.add(2, y);
  EXPECT_FALSE(x.whom);
  EXPECT_TRUE(y.whom);
  int n = 0;
  all.each([&](transfer&) { ++n; });
  EXPECT_EQ(n, 2);
}

}  // namespace
