// What this file is for: work that a thread keeps is added up until a wake-up pays.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "actors/logic/scheduling/unshared_work.hpp"

namespace {

using troupe::logic::unshared_work;

constexpr double wake_up = 30'000, step = 1'000;

// A thread that works without a break, and keeps a part of its time's worth of work from others.
struct thread_alone {
  unshared_work kept;
  double busy = 0;

  // Returns how many steps go by until another thread is to be woken; 0: never.
  int steps_until_wake(double part = 1) {
    for (int n = 1; n <= 1'000'000; ++n) {
      busy += step;
      if (kept.add(part * step, wake_up, busy)) return n;
    }
    return 0;
  }
};

TEST(unshared_work, a_thread_is_woken_for_as_much_as_a_wake_up_takes) {
  EXPECT_EQ(thread_alone().steps_until_wake(), 30);
  EXPECT_EQ(thread_alone().steps_until_wake(0.5), 60);
}

TEST(unshared_work, nothing_is_never_enough) { EXPECT_EQ(thread_alone().steps_until_wake(0), 0); }

TEST(unshared_work, where_that_changes_nothing_it_is_asked_for_less_and_less_often) {
  thread_alone t;
  EXPECT_EQ(t.steps_until_wake(), 30);
  EXPECT_EQ(t.steps_until_wake(), 60);
  EXPECT_EQ(t.steps_until_wake(), 120);
  for (int i = 0; i < 10; ++i) t.steps_until_wake();
  EXPECT_EQ(t.steps_until_wake(), 64 * 30);
}

TEST(unshared_work, what_others_have_taken_meanwhile_makes_up_for_that) {
  thread_alone t;
  for (int i = 0; i < 10; ++i) t.steps_until_wake();
  t.busy += 10 * 64 * wake_up;  // nothing was kept
  EXPECT_EQ(t.steps_until_wake(), 30);
}

TEST(unshared_work, a_series_that_begins_again_is_helped_as_soon_as_the_first) {
  thread_alone t;
  for (int series = 0; series < 20; ++series) {
    EXPECT_EQ(t.steps_until_wake(), 30) << series;
    t.busy += 1'000'000;  // shared
  }
}

}  // namespace
