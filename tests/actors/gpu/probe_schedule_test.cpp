// What this file is for: an idle device looks at its link more and more rarely, until something has run.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/probe_schedule.hpp"

#include <gtest/gtest.h>

namespace {

using std::chrono::milliseconds;
using troupe::detail::probe_schedule;

// A tick is a microsecond.
struct probes_test : testing::Test {
  milliseconds left(std::uint64_t now) const { return std::chrono::duration_cast<milliseconds>(probes.left(now)); }
  probe_schedule probes{1'000};
};

TEST_F(probes_test, are_none_before_anything_was_looked_at) { EXPECT_FALSE(probes.any_left()); }

TEST_F(probes_test, begin_some_time_after_the_last_task) {
  probes.note_ran(1, 5'000);
  EXPECT_TRUE(probes.any_left());
  EXPECT_EQ(left(5'000), milliseconds(100));
  EXPECT_EQ(left(55'000), milliseconds(50));
  EXPECT_EQ(left(200'000), milliseconds(0));
  probes.note_ran(1, 90'000);
  EXPECT_EQ(left(90'000), milliseconds(15)) << "nothing has run since";
  probes.note_ran(2, 90'000);
  EXPECT_EQ(left(90'000), milliseconds(100));
}

TEST_F(probes_test, are_put_off_by_each_that_agrees_and_end) {
  probes.note_ran(1, 1);
  probes.looked(true, 100'000);
  EXPECT_EQ(left(100'000), milliseconds(400));
  probes.looked(true, 500'000);
  EXPECT_EQ(left(500'000), milliseconds(800));
  EXPECT_TRUE(probes.any_left());
  probes.looked(true, 1'300'000);
  EXPECT_FALSE(probes.any_left());
  probes.note_ran(2, 2'000'000);
  EXPECT_TRUE(probes.any_left());
}

TEST_F(probes_test, come_again_soon_when_one_does_not_agree) {
  probes.note_ran(1, 1);
  for (int i = 0; i < 10; ++i) probes.looked(false, 100'000);
  EXPECT_TRUE(probes.any_left());
  EXPECT_EQ(left(100'000), milliseconds(100));
}

}  // namespace
