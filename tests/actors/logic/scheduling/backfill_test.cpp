// What this file is for: slots that gather for one task are used meanwhile by those that end in time, and by no others.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/backfill.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace {

using troupe::logic::backfill;
using time_of = backfill::time;

constexpr int a = 0, b = 0, c = 0, wide = 0;  // whose addresses stand for threads and a task

TEST(backfill, lets_pass_what_ends_before_the_body_that_is_waited_for) {
  backfill f(0);
  const std::vector<backfill::holding> running{{&a, 1, 100, 1000}};
  f.look(running, {&wide, 2, 1}, 200);  // it begins at 1100
  EXPECT_TRUE(f.lets_pass(200, 900));
  EXPECT_FALSE(f.lets_pass(200, 901));
  EXPECT_FALSE(f.lets_pass(200, 0)) << "nobody knows how long it takes";
}

TEST(backfill, expects_a_body_that_is_over_its_time_to_take_as_long_again) {
  backfill f(0);
  const std::vector<backfill::holding> running{{&a, 1, 100, 10}};
  f.look(running, {&wide, 2, 1}, 600);
  EXPECT_TRUE(f.lets_pass(600, 500));
  EXPECT_FALSE(f.lets_pass(600, 501));
}

TEST(backfill, counts_the_slots_of_bodies_that_have_several) {
  backfill f(0);
  const std::vector<backfill::holding> running{{&a, 2, 0, 100}, {&b, 1, 0, 500}};
  f.look(running, {&wide, 3, 1}, 10);  // the two of the first one are enough
  EXPECT_TRUE(f.lets_pass(10, 90));
  EXPECT_FALSE(f.lets_pass(10, 91));
  f.look(running, {&wide, 4, 1}, 10);
  EXPECT_TRUE(f.lets_pass(10, 490));
}

TEST(backfill, lets_anything_have_a_slot_that_is_not_needed) {
  backfill f(0);
  const std::vector<backfill::holding> running{{&a, 2, 0, 100}};
  f.look(running, {&wide, 2, 1}, 10);  // of three, one is left beside it
  EXPECT_TRUE(f.lets_pass(10, 1'000'000));
  f.passes(&b, 10, 1'000'000);
  EXPECT_FALSE(f.lets_pass(10, 1'000'000));
}

TEST(backfill, sees_that_a_thread_runs_another_body) {
  backfill f(0);
  f.look(std::vector<backfill::holding>{{&a, 1, 100, 1000}}, {&wide, 2, 1}, 200);
  f.look(std::vector<backfill::holding>{{&a, 1, 300, 10}}, {&wide, 2, 1}, 301);
  EXPECT_FALSE(f.lets_pass(301, 100));
  f.look({}, {&wide, 2, 1}, 400);  // it has ended: nobody holds the second slot, nothing is known of when it comes
  EXPECT_FALSE(f.lets_pass(400, 1));
}

TEST(backfill, is_not_put_off_for_ever_by_those_that_take_longer_than_was_predicted) {
  // Two slots. Each one that passes is predicted to take 1 and takes 100, and the other slot has the next one before it
  // ends.
  backfill f(0);
  const int threads[2] = {};
  time_of now = 1000;
  std::vector<backfill::holding> running{{&threads[0], 1, 0, 1}};
  f.look(running, {&wide, 2, 1}, now);
  int passed = 0;
  std::size_t next = 1;
  running.clear();
  for (; f.lets_pass(now, 1) && passed < 1000; ++passed) {
    f.passes(&threads[next], now, 1);
    now += 50;
    next = 1 - next;
    f.ended(&threads[next]);
    f.look(running, {&wide, 2, 1}, now);
    now += 50;
    f.look(running, {&wide, 2, 1}, now);
  }
  EXPECT_LE(passed, 12);
  EXPECT_GE(passed, 1);
}

TEST(backfill, forgives_those_that_are_late_while_another_body_is_waited_for) {
  backfill f(0);
  const std::vector<backfill::holding> running{{&a, 1, 0, 1}};  // ends some time
  time_of now = 1000;
  for (int i = 0; i < 1000; ++i) {
    f.look(running, {&wide, 3, 2}, now);
    ASSERT_TRUE(f.lets_pass(now, 1)) << i;
    f.passes(&b, now, 1);
    now += 100;  // it is late by that much
    f.look(running, {&wide, 3, 2 - 1}, now);
    f.passes(&c, now, 1);
    f.ended(&b);
    f.ended(&c);
  }
}

}  // namespace
