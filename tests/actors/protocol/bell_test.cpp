// What this file is for: a bell loses no ring, and does not wake for nothing.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/protocol/bell.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "actors/protocol/mailbox.hpp"

namespace {

using namespace troupe::detail;
using namespace std::chrono_literals;

TEST(bell, keeps_a_ring_for_the_next_sleep_and_only_for_that) {
  bell b;
  b.ring();
  b.sleep_unless([] { return false; });  // ends at once
  bell::held hold = b.hold();
  EXPECT_FALSE(b.wait_for(hold, 1ms));
}

TEST(bell, does_not_sleep_if_there_is_work_after_the_sleep_was_announced) {
  bell b;
  bool announced = false;
  b.sleep_unless([&] { return announced = b.has_sleeper(); });
  EXPECT_TRUE(announced);
  EXPECT_FALSE(b.has_sleeper());
}

TEST(bell, is_told_apart_from_a_time_that_has_passed) {
  bell b;
  bell::held hold = b.hold();
  b.announce(hold);
  b.mark_rung(hold);
  EXPECT_TRUE(b.is_rung(hold));
  EXPECT_TRUE(b.wait_for(hold, 1h));
  b.answer(hold);
  EXPECT_FALSE(b.is_rung(hold));
  EXPECT_FALSE(b.wait_for(hold, 1ms));
  b.get_up();
}

TEST(bell, with_a_mailbox_loses_nothing_of_what_many_post) {
  bell b;
  mailbox<int> box;
  constexpr int posters = 4, each = 3000;
  std::vector<std::jthread> all;
  for (int i = 0; i < posters; ++i)
    all.emplace_back([&] {
      for (int k = 0; k < each; ++k) {
        box.post(1);
        if (b.has_sleeper()) b.ring();
      }
    });
  int got = 0;
  std::vector<int> items;
  while (got < posters * each) {
    b.sleep_unless([&] { return box.count() != 0; });
    items.clear();
    box.drain(items);
    got += static_cast<int>(items.size());
  }
  EXPECT_EQ(got, posters * each);
}

TEST(mailbox, that_is_closed_takes_nothing_and_gives_what_was_left) {
  mailbox<int> box;
  EXPECT_EQ(box.post_if_open(1), 1u);
  EXPECT_EQ(box.post_if_open(2), 2u);
  EXPECT_EQ(box.close(), (std::vector<int>{1, 2}));
  EXPECT_EQ(box.post_if_open(3), 0u);
  EXPECT_EQ(box.count(), 0u);
}

}  // namespace
