// What this file is for: when a stream has one thread more.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/stream/hands.hpp"

#include <gtest/gtest.h>

namespace {

using troupe::logic::hands;

TEST(hands, wants_no_more_for_work_that_is_done_before_another_thread_has_begun) {
  const hands h;
  EXPECT_FALSE(h.wants_more(0, 0));
  EXPECT_FALSE(h.wants_more(100, 700));  // 64 items of ten ns
  EXPECT_FALSE(h.wants_more(h.start_ns(), 0));
}

TEST(hands, wants_one_more_where_what_is_ready_would_wait_longer) {
  const hands h;
  EXPECT_TRUE(h.wants_more(1e6, 0));  // behind a long function
  EXPECT_TRUE(h.wants_more(0, 1e6));
  EXPECT_TRUE(h.wants_more(h.start_ns(), h.start_ns()));
}

TEST(hands, follows_what_a_start_takes_here) {
  hands h;
  for (int i = 0; i < 100; ++i) h.note_start(60'000);
  EXPECT_NEAR(h.start_ns(), 60'000, 1'000);
  EXPECT_FALSE(h.wants_more(40'000, 40'000));
  for (int i = 0; i < 100; ++i) h.note_start(0);
  EXPECT_TRUE(h.wants_more(40'000, 40'000));
  EXPECT_FALSE(h.wants_more(1'000, 1'000));  // items change cores even if a thread is there at once
  h.note_start(1e12);                        // once, on a busy machine
  EXPECT_LT(h.start_ns(), 20'000);
}

}  // namespace
