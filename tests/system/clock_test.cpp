// What this file is for: clocks that are set while work goes on, and machines that count time from another start.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>

#include "tests/support/clock.hpp"
#include "tests/system/cluster.hpp"

namespace {

using namespace test;

const scope on_workers = scope::at("one") | scope::at("two");

TEST(clocks, that_are_set_forward_and_back_by_an_hour_cost_nothing) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  worker one("one", proof, rt.addresses().front()), two("two", proof, rt.addresses().front());
  ASSERT_TRUE(rt.wait_for_nodes(2, 10s));
  const auto before = rt.nodes();
  chains stays(rt, chains::results::stay_there, 4, 500), home(rt, chains::results::come_home, 4, 500);
  const long now = static_cast<long>(std::time(nullptr));
  for (int step = 0; step < 12; ++step) {
    stays.grow(20, on_workers);
    home.grow(20, on_workers);
    const long mine = (step % 3 - 1) * 3600L, theirs = (step % 4 - 2) * 3600L;
    set_clock(std::chrono::seconds(mine));
    one.process.tell("clock " + std::to_string(theirs));
    const long shown = std::stol(one.process.line_after("clock "));
    EXPECT_NEAR(static_cast<double>(shown - now), static_cast<double>(theirs), 60.0);
    EXPECT_NEAR(static_cast<double>(std::time(nullptr) - now), static_cast<double>(mine), 60.0);
    ASSERT_TRUE(stays.first_in_line_end(10s));
  }
  const bool done = rt.wait_all_for(20s);
  set_clock({});
  ASSERT_TRUE(done);
  EXPECT_EQ(stays.wrong(), 0);
  EXPECT_EQ(home.wrong(), 0);
  EXPECT_EQ(one.ran() + two.ran(), stays.spawned() + home.spawned());  // nothing was given up and done again
  const auto after = rt.nodes();
  ASSERT_EQ(after.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(after[i].id, before[i].id);
}

TEST(clocks, that_were_started_at_another_time_agree_as_well) {
  const std::vector<std::string> later{"unshare", "--time", "--monotonic", "4000000", "--boottime", "4000000"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.begin(), later.begin(), later.end());
    return words;
  };
  if (run(with({"true"})).how != ended_with(0))
    GTEST_SKIP() << "time namespaces cannot be made here (unshare --time): this needs CAP_SYS_ADMIN";
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  child one(with({std::filesystem::read_symlink("/proc/self/exe").string(), "worker", "one", proof.file(),
                  "127.0.0.1:0", rt.addresses().front()}));
  worker two("two", proof, rt.addresses().front());
  ASSERT_TRUE(rt.wait_for_nodes(2, 10s));
  chains work(rt, chains::results::stay_there, 8, 1'000);
  work.grow(100, on_workers);
  ASSERT_TRUE(comes_true(rt, [&] { return tasks_of(rt, "one") > 50; }));
  // The worker with a clock of its own is missed as soon as any other.
  one.signal(SIGSTOP);
  EXPECT_FALSE(comes_true(
      rt, [&] { return rt.nodes().size() != 2; }, 1500ms));
  one.signal(SIGCONT);
  ASSERT_TRUE(rt.wait_all_for(20s));
  EXPECT_EQ(work.wrong(), 0);
  work.grow(100, on_workers);
  ASSERT_TRUE(comes_true(rt, [&] { return tasks_of(rt, "one") > 50; }));
  const auto killed = clock::now();
  one.signal(SIGKILL);
  ASSERT_TRUE(comes_true(rt, [&] { return !is_there(rt, "one"); }));
  if (!sanitized) {
    EXPECT_LT(seconds_since(killed), 0.3);
  }
  ASSERT_TRUE(rt.wait_all_for(20s));
  EXPECT_EQ(work.wrong(), 0);
}

}  // namespace
