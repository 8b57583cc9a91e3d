// What this file is for: tasks and new arrays go into one frame, which the other node reads as they were written.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/task_frame.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using troupe::detail::task_frame;
namespace net = troupe::net;
namespace wire = troupe::detail::wire;

wire::array_descriptor array(std::uint64_t id) {
  wire::array_descriptor a;
  a.id = id;
  return a;
}
wire::task_descriptor task(std::uint64_t id) {
  wire::task_descriptor t;
  t.id = id;
  return t;
}
wire::tasks read(const net::writer& frame) {
  net::reader from(frame.view());
  EXPECT_EQ(from.fixed<wire::kind>(), wire::kind::tasks);
  return wire::take_tasks(from);
}

TEST(task_frame, carries_arrays_and_tasks_and_begins_anew) {
  task_frame f;
  EXPECT_TRUE(f.is_empty());
  f.add(task((1u << 20) | 1));
  f.add(array(5));
  f.add(task((2u << 20) | 2));
  EXPECT_FALSE(f.is_empty());
  const wire::tasks all = read(f.take());
  ASSERT_EQ(all.arrays.size(), 1u);
  EXPECT_EQ(all.arrays[0].id, 5u);
  ASSERT_EQ(all.all.size(), 2u);
  EXPECT_EQ(all.all[1].id, (2u << 20) | 2);
  EXPECT_TRUE(f.is_empty());
  EXPECT_TRUE(read(f.take()).all.empty());
}

TEST(task_frame, leaves_a_dropped_task_out) {
  task_frame f;
  f.add(task((1u << 20) | 1));
  f.add(task((2u << 20) | 2));
  f.drop_last();
  f.add(task((3u << 20) | 3));
  const wire::tasks all = read(f.take());
  ASSERT_EQ(all.all.size(), 2u);
  EXPECT_EQ(all.all[1].id, (3u << 20) | 3);
}

TEST(task_frame, returns_the_bytes_of_the_task_alone) {
  task_frame f;
  f.add(task((1u << 20) | 1));
  const auto bytes = f.add(task((2u << 20) | 2));
  net::writer alone;
  wire::put(alone, task((2u << 20) | 2));
  EXPECT_TRUE(std::ranges::equal(bytes, alone.view()));
}

TEST(task_frame, is_full_at_its_bound_and_gives_clean_cards) {
  task_frame f;
  while (!f.is_full()) f.add(task(1));
  EXPECT_GE(f.take().size(), task_frame::bytes_max);
  EXPECT_FALSE(f.is_full());
  f.blank_card().name = "a";
  EXPECT_TRUE(f.blank_card().name.empty());
}

}  // namespace
