// What this file is for: reports of copies are taken once, in their order, and not beyond their number.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/protocol/transfer_reports.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <tuple>
#include <vector>

namespace {

using namespace troupe::detail;
using report = std::tuple<memory_space, memory_space, std::uint64_t, float>;

std::vector<report> taken(transfer_reports& r) {
  std::vector<report> all;
  r.take([&](memory_space from, memory_space to, std::uint64_t bytes, float ns) {
    all.emplace_back(from, to, bytes, ns);
  });
  return all;
}

TEST(transfer_reports, are_taken_once_in_the_order_in_which_they_came) {
  transfer_reports r;
  EXPECT_TRUE(taken(r).empty());
  r.add(0, 1, 100, 2.5f);
  r.add(1, 0, 200, 3.5f);
  EXPECT_EQ(taken(r), (std::vector<report>{{0, 1, 100, 2.5f}, {1, 0, 200, 3.5f}}));
  EXPECT_TRUE(taken(r).empty());
  r.add(2, 0, 300, 4.5f);
  EXPECT_EQ(taken(r), (std::vector<report>{{2, 0, 300, 4.5f}}));
}

TEST(transfer_reports, are_dropped_while_there_is_no_room_for_more) {
  transfer_reports r;
  for (std::uint64_t i = 0; i < 1000; ++i) r.add(0, 1, i, 1);
  const std::vector<report> first = taken(r);
  ASSERT_EQ(first.size(), 64u);
  for (std::uint64_t i = 0; i < first.size(); ++i) EXPECT_EQ(std::get<2>(first[i]), i) << "the oldest stay";
  r.add(0, 1, 7, 1);
  EXPECT_EQ(taken(r).size(), 1u) << "there is room again";
}

TEST(transfer_reports, come_from_several_threads_whole) {
  transfer_reports r;
  std::vector<report> all;
  const auto take = [&] {
    for (const report& one : taken(r)) all.push_back(one);
  };
  {
    std::vector<std::jthread> threads;
    for (memory_space i = 1; i <= 4; ++i)
      threads.emplace_back([&, i] {
        for (std::uint64_t k = 0; k < 10; ++k) r.add(i, i, 1000u * i + k, static_cast<float>(i));
      });
    for (int i = 0; i < 50; ++i) take();
  }
  take();
  ASSERT_EQ(all.size(), 40u);  // they all fit
  for (const auto& [from, to, bytes, ns] : all) {
    EXPECT_EQ(from, to);
    EXPECT_EQ(bytes / 1000, from);
    EXPECT_EQ(ns, static_cast<float>(from));
  }
}

}  // namespace
