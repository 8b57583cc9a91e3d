// What this file is for: floods of strangers at a node that works: nothing breaks, and work hardly notices.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <unistd.h>

#include "tests/support/strangers.hpp"
#include "tests/system/cluster.hpp"

namespace {

using namespace test;

struct latencies {
  double median = 0, p99 = 0;  // of small tasks there, each waited for, in microseconds
};

latencies measure(troupe::runtime& rt, const troupe::array<std::uint64_t, 1>& data, int count) {
  std::vector<double> all;
  for (int i = 0; i < count; ++i) {
    const auto begin = clock::now();
    rt.spawn({.where = scope::at("one")}, link_on, troupe::update(data), std::uint64_t{1}, std::uint64_t{0}).get();
    all.push_back(seconds_since(begin) * 1e6);
  }
  std::ranges::sort(all);
  return {all[all.size() / 2], all[all.size() * 99 / 100]};
}

// At a node that gives work and at one that does it.
TEST(floods, of_900_strangers_cost_little_memory_and_no_result) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  worker one("one", proof, rt.addresses().front());
  const std::string its_address = one.address();
  ASSERT_TRUE(rt.wait_for_nodes(1, 10s));
  {
    chains first(rt, chains::results::come_home, 8, 0);
    first.grow(100, scope::at("one"));
    EXPECT_EQ(first.wrong(), 0);
  }
  const process_facts mine = facts_of(getpid()), theirs = one.process.facts();
  strangers_at here(rt.addresses().front(), 900), there(its_address, 900);
  chains work(rt, chains::results::come_home, 8, 200);
  std::size_t most_here = 0, most_there = 0;
  for (int round = 0; round < 7; ++round) {  // some of them are there when others have been sent away after 5 s
    work.grow(50, scope::at("one"));
    here.come_again();
    there.come_again();
    most_here = std::max(most_here, facts_of(getpid()).resident_bytes);
    most_there = std::max(most_there, one.process.facts().resident_bytes);
  }
  ASSERT_TRUE(rt.wait_all_for(20s));
  EXPECT_EQ(work.wrong(), 0);
  EXPECT_EQ(one.ran(), 800 + work.spawned());  // nothing was done twice
  // 64 KiB each, of the 256 that are let in at once, and some for the work itself.
  if (!sanitized) {
    EXPECT_LT(most_here, mine.resident_bytes + (256u * 64 << 10) + (16u << 20));
    EXPECT_LT(most_there, theirs.resident_bytes + (256u * 64 << 10) + (16u << 20));
  }
  RecordProperty("memory_here_kib", static_cast<int>((most_here - std::min(most_here, mine.resident_bytes)) >> 10));
  RecordProperty("memory_there_kib",
                 static_cast<int>((most_there - std::min(most_there, theirs.resident_bytes)) >> 10));
  for (strangers_at* s : {&here, &there}) EXPECT_EQ(s->leave(), ended_with(0));
  worker late("late", proof, its_address);
  EXPECT_TRUE(rt.wait_for_nodes(2, 20s));
  late.process.end_input();
  late.process.wait();
  EXPECT_TRUE(comes_true(rt, [&] { return one.process.facts().descriptors <= theirs.descriptors; }));
  EXPECT_LE(one.process.facts().threads, theirs.threads);
}

// With and without them in turns, and the best of each: what else this machine does is not theirs.
TEST(slow_floods, of_900_strangers_at_most_double_the_time_of_a_task) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  worker one("one", proof, rt.addresses().front());
  const std::string its_address = one.address();
  ASSERT_TRUE(rt.wait_for_nodes(1, 10s));
  const auto data = rt.filled<std::uint64_t>({1}, troupe::tiles(1), 1);
  measure(rt, data, 2000);
  latencies quiet{1e9, 1e9}, flooded{1e9, 1e9};
  const auto keep_best = [](latencies& best, const latencies& l) {
    best.median = std::min(best.median, l.median);
    best.p99 = std::min(best.p99, l.p99);
  };
  for (int round = 0; round < 4; ++round) {
    keep_best(quiet, measure(rt, data, 10'000));
    strangers_at here(rt.addresses().front(), 900), there(its_address, 900);
    here.come_again();
    there.come_again();
    const auto since = clock::now();
    latencies l;
    while (seconds_since(since) < 6) keep_best(flooded, l = measure(rt, data, 10'000));
    here.come_again();  // they were there all the while
    there.come_again();
  }
  RecordProperty("quiet_median_us", static_cast<int>(quiet.median));
  RecordProperty("quiet_p99_us", static_cast<int>(quiet.p99));
  RecordProperty("flooded_median_us", static_cast<int>(flooded.median));
  RecordProperty("flooded_p99_us", static_cast<int>(flooded.p99));
  std::printf("median %.0f us, with strangers %.0f us; p99 %.0f us, with strangers %.0f us\n", quiet.median,
              flooded.median, quiet.p99, flooded.p99);
  if (!sanitized) {
    EXPECT_LT(flooded.median, 2 * quiet.median);
    EXPECT_LT(flooded.p99, 2 * quiet.p99);
  }
  ASSERT_EQ(rt.nodes().size(), 1u);
}

}  // namespace
