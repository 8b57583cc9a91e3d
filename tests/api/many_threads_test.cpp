// What this file is for: many threads that are woken at once, while threads from outside help and tasks need no slot.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

#include <troupe/troupe.hpp>

namespace {

using namespace troupe;
using namespace std::chrono_literals;

void compute_for(std::chrono::microseconds t) {
  const auto end = std::chrono::steady_clock::now() + t;
  while (std::chrono::steady_clock::now() < end) continue;
}

// A thread that is woken, and is to wake others, may lose its slot to one that helps before it comes.
TEST(many_threads, lose_no_task_where_all_of_them_are_woken_again_and_again) {
  constexpr int threads = 24;
  runtime rt({.threads = threads});
  const task_options without_slot{.resources = {{"cpu", 0}}};
  std::atomic<int> ran = 0;
  int spawned = 0;
  const auto ends_all = [](const std::vector<future<void>>& all) {
    for (const auto& f : all)
      if (!f.wait_for(30s)) return false;
    return true;
  };
  for (int round = 0; round < 150; ++round) {
    std::vector<future<void>> all;
    for (int i = 0; i < 3 * threads; ++i)
      all.push_back(rt.spawn([&] {
        compute_for(20us);
        ++ran;
      }));
    for (std::size_t i = all.size(); i-- > 0;) all[i].get();  // this thread helps with the last ones
    spawned += static_cast<int>(all.size());
    all.clear();
    for (int i = 0; i < 2 * threads; ++i)
      all.push_back(rt.spawn([&] {
        compute_for(15us);
        ++ran;
      }));
    for (int i = 0; i < 4; ++i) all.push_back(rt.spawn(without_slot, [&] { ++ran; }));
    spawned += static_cast<int>(all.size());
    ASSERT_TRUE(ends_all(all)) << "round " << round << ": " << spawned - ran << " tasks are lost";
    compute_for(std::chrono::microseconds(200 + 97 * round % 1500));  // so that more or fewer of them sleep
  }
  EXPECT_EQ(ran, spawned);
}

}  // namespace
