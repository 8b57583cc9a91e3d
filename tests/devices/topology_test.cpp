// What this file is for: how many cores this process may use, whatever the machine has.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <sched.h>

#include <atomic>
#include <set>
#include <thread>

#include "devices/host/topology.hpp"
#include "devices/threads.hpp"

namespace {

using namespace troupe::devices;

TEST(topology, reads_a_quota_in_cores_from_cpu_max) {
  EXPECT_DOUBLE_EQ(parse_cpu_max("50000 100000"), 0.5);
  EXPECT_DOUBLE_EQ(parse_cpu_max("200000 100000\n"), 2);
  EXPECT_DOUBLE_EQ(parse_cpu_max("150000 50000"), 3);
}

TEST(topology, takes_max_and_whatever_it_cannot_read_for_no_quota) {
  for (const char* text : {"max 100000", "", "\n", "max", "50000", "50000 0", "-1 100000", "x 100000", "50000 x"})
    EXPECT_EQ(parse_cpu_max(text), 0) << "'" << text << "'";
}

TEST(topology, finds_at_least_one_core_and_no_more_than_the_affinity_mask_has) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_GE(usable_core_count(), 1);
  EXPECT_LE(usable_core_count(), CPU_COUNT(&set));
}

TEST(topology, lists_each_core_of_the_affinity_mask_once) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  const auto cores = usable_cores();
  const std::set<int> different(cores.begin(), cores.end());
  EXPECT_EQ(different.size(), cores.size());
  EXPECT_EQ(different.size(), static_cast<std::size_t>(CPU_COUNT(&set)));
  for (const int c : cores) EXPECT_TRUE(CPU_ISSET(c, &set)) << c;
}

TEST(topology, counts_one_core_on_a_thread_that_may_use_one) {
  const int core = usable_cores().back();
  int count = 0;
  std::vector<int> cores;
  bool bound = false;
  std::thread([&] {  // the mask goes with the thread
    bound = bind_this_thread(core);
    count = usable_core_count();
    cores = usable_cores();
  })
      .join();
  ASSERT_TRUE(bound);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(cores, std::vector<int>{core});
}

TEST(threads, refuse_a_core_that_does_not_exist) {
  bool bound = true;
  std::thread([&] { bound = bind_this_thread(CPU_SETSIZE - 1); }).join();
  EXPECT_FALSE(bound);
}

TEST(threads, another_thread_leaves_a_core_and_may_use_it_again) {
  cpu_set_t before, after;
  CPU_ZERO(&before);
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one core";
  std::atomic<int> id{0}, core{-1}, next{-1};
  std::thread other([&] {
    id = current_thread();
    const int first = current_cpu();
    core = first;
    int now = first;
    while (now == first) now = current_cpu();  // it does not give its core away
    next = now;
  });
  while (core < 0) std::this_thread::yield();
  EXPECT_TRUE(move_thread_from(core, id));
  CPU_ZERO(&after);
  other.join();
  EXPECT_NE(next, core);
  EXPECT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after)) << "the caller's cores";
}

TEST(threads, a_thread_that_may_use_one_core_stays_and_so_do_the_cores_that_threads_may_use) {
  std::atomic<int> id{0};
  std::atomic<bool> over{false};
  cpu_set_t one, after;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(usable_cores().front()), &one);
  std::thread other([&] {
    ::sched_setaffinity(0, sizeof one, &one);
    id = current_thread();
    over.wait(false);
  });
  while (id == 0) std::this_thread::yield();
  EXPECT_FALSE(move_thread_from(usable_cores().front(), id));
  CPU_ZERO(&after);
  EXPECT_EQ(::sched_getaffinity(id, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&one, &after));
  over = true;
  over.notify_all();
  other.join();
  EXPECT_FALSE(move_thread_from(0, -1));
  EXPECT_FALSE(move_thread_from(-1, current_thread()));
}

TEST(topology, knows_the_processor_and_the_memory) {
  EXPECT_FALSE(processor_name().empty());
  EXPECT_EQ(processor_name().find('\n'), std::string::npos);
  EXPECT_GT(memory_bytes(), std::uint64_t{1} << 24);
}

}  // namespace
