// What this file is for: what is known of kernels that have grown, and of which nothing is known.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/protocol/grown_times.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <thread>

#include <troupe/detail/task.hpp>

namespace {

using troupe::detail::grown_times;
using troupe::detail::kernel_info;

TEST(grown_times, know_kernels_that_have_grown_and_how_long_they_take_since) {
  grown_times times;
  const kernel_info a, b;
  EXPECT_EQ(times.of(a, 100), 0.0f);
  times.note(a, 100, 7'000, false);
  EXPECT_EQ(times.of(a, 100), 0.0f) << "it has not grown";
  times.note(a, 100, 50'000, true);
  EXPECT_EQ(times.of(a, 100), 50'000.0f);
  EXPECT_EQ(times.of(b, 100), 0.0f);
  times.note(a, 100, 60'000, false);
  times.note(b, 100, 60'000, false);
  EXPECT_EQ(times.of(a, 100), 60'000.0f);
  EXPECT_EQ(times.of(b, 100), 0.0f);
}

TEST(grown_times, take_kernels_with_one_key_for_one) {
  grown_times times;
  const kernel_info a{.key = 5}, same{.key = 5}, other{.key = 6};
  times.note(a, 100, 50'000, true);
  EXPECT_EQ(times.of(same, 100), 50'000.0f);
  EXPECT_EQ(times.of(other, 100), 0.0f);
  times.note(same, 100, 60'000, false);
  EXPECT_EQ(times.of(a, 100), 60'000.0f);
}

TEST(grown_times, tell_sizes_apart_by_powers_of_two) {
  grown_times times;
  const kernel_info a;
  times.note(a, 100, 50'000, true);
  times.note(a, 1'000, 90'000, true);
  EXPECT_EQ(times.of(a, 64), 50'000.0f);
  EXPECT_EQ(times.of(a, 127), 50'000.0f);
  EXPECT_EQ(times.of(a, 128), 0.0f);
  EXPECT_EQ(times.of(a, 1'023), 90'000.0f);
}

TEST(grown_times, say_nothing_of_kernels_for_which_there_was_no_room) {
  grown_times times;
  std::array<kernel_info, grown_times::capacity + 1> all;
  for (std::size_t i = 0; i < grown_times::capacity; ++i) times.note(all[i], 1, static_cast<float>(i + 1), true);
  EXPECT_EQ(times.of(all.back(), 1), 0.0f);
  times.note(all.back(), 1, 1'000, true);
  EXPECT_FALSE(times.of(all.back(), 1).has_value());
  EXPECT_FALSE(times.of(kernel_info(), 1).has_value()) << "it may be one of them";
  for (std::size_t i = 0; i < grown_times::capacity; ++i) EXPECT_EQ(times.of(all[i], 1), static_cast<float>(i + 1));
}

TEST(grown_times, are_asked_while_they_change) {
  grown_times times;
  const kernel_info a;
  std::thread notes([&] {
    for (int i = 1; i <= 20'000; ++i) times.note(a, 1, static_cast<float>(i), i == 1);
  });
  float last = 0;
  bool falls = false;
  while (last < 20'000) {
    const float now = times.of(a, 1).value_or(-1);
    falls = falls || now < last;
    last = now;
  }
  notes.join();
  EXPECT_FALSE(falls);
}

}  // namespace
