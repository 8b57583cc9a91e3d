// What this file is for: workers that are stopped for a while, and connections that break.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "tests/system/cluster.hpp"

namespace {

using namespace test;

const scope on_workers = scope::at("one") | scope::at("two");

TEST(silence, a_worker_that_was_stopped_for_two_seconds_loses_nothing_and_repeats_nothing) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  worker one("one", proof, rt.addresses().front()), two("two", proof, rt.addresses().front());
  ASSERT_TRUE(rt.wait_for_nodes(2, 10s));
  const std::vector<troupe::node_report> before = rt.nodes();
  chains work(rt, chains::results::stay_there, 8, 1'000);
  work.grow(200, on_workers);
  ASSERT_TRUE(comes_true(rt, [&] { return tasks_of(rt, "one") > 50; }));
  one.process.signal(SIGSTOP);
  EXPECT_FALSE(comes_true(
      rt, [&] { return rt.nodes().size() != 2; }, 2s));  // that long it is missed, not given up
  one.process.signal(SIGCONT);
  ASSERT_TRUE(rt.wait_all_for(20s));
  EXPECT_EQ(work.wrong(), 0);
  EXPECT_EQ(one.ran() + two.ran(), work.spawned());
  ASSERT_EQ(rt.nodes().size(), 2u);
  EXPECT_EQ(rt.nodes()[0].id, before[0].id);
}

TEST(silence, a_worker_that_is_stopped_for_longer_is_given_up_and_taken_in_again) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  worker one("one", proof, rt.addresses().front()), two("two", proof, rt.addresses().front());
  ASSERT_TRUE(rt.wait_for_nodes(2, 10s));
  chains work(rt, chains::results::come_home, 8, 2'000);
  work.grow(200, on_workers);
  ASSERT_TRUE(comes_true(rt, [&] { return tasks_of(rt, "one") > 50; }));
  const auto stopped = clock::now();
  one.process.signal(SIGSTOP);
  expect_gone_and_flowing(rt, "one", stopped, 3.5, work);
  one.process.signal(SIGCONT);
  const auto again = clock::now();
  ASSERT_TRUE(comes_true(rt, [&] { return is_there(rt, "one"); })) << "it was not taken in again";
  RecordProperty("again_ms", static_cast<int>(seconds_since(again) * 1000));
  const std::uint64_t ran = one.ran();
  work.grow(10, scope::at("one"));
  rt.wait_all();
  EXPECT_EQ(work.wrong(), 0);
  EXPECT_GE(one.ran(), ran + 80);
}

TEST(slow_silence, a_worker_that_is_stopped_for_twenty_seconds_costs_no_result_and_leaves_nothing_behind) {
  const secret proof;
  troupe::runtime rt(owner_options(proof));
  worker one("one", proof, rt.addresses().front()), two("two", proof, rt.addresses().front());
  ASSERT_TRUE(rt.wait_for_nodes(2, 10s));
  const std::string empty = "nodes 2 unfinished 0 arrays 0 bytes 0";
  {
    chains first(rt, chains::results::stay_there, 8, 100);
    first.grow(20, on_workers);
    EXPECT_EQ(first.wrong(), 0);
  }
  const auto all_is_quiet = [&] { return one.report() == empty && two.report() == empty; };  // they know each other
  ASSERT_TRUE(comes_true(rt, all_is_quiet)) << one.report() << "; " << two.report();
  const process_facts mine = facts_of(getpid()), theirs = one.process.facts();
  {
    chains home(rt, chains::results::come_home, 8, 2'000), stays(rt, chains::results::stay_there, 8, 2'000);
    home.grow(100, on_workers);
    stays.grow(100, on_workers);
    ASSERT_TRUE(comes_true(rt, [&] { return tasks_of(rt, "one") > 50; }));
    const auto stopped = clock::now();
    one.process.signal(SIGSTOP);
    expect_gone_and_flowing(rt, "one", stopped, 3.5, home);
    while (seconds_since(stopped) < 20) {  // others work all the while
      home.grow(10, on_workers);
      ASSERT_TRUE(rt.wait_all_for(20s));
    }
    one.process.signal(SIGCONT);
    ASSERT_TRUE(comes_true(rt, [&] { return is_there(rt, "one"); })) << "it was not taken in again";
    home.grow(10, scope::at("one"));
    stays.grow(10, scope::at("one"));
    ASSERT_TRUE(rt.wait_all_for(20s));
    EXPECT_EQ(home.wrong(), 0);
    EXPECT_EQ(stays.wrong(), 0);
  }
  EXPECT_TRUE(comes_true(rt, all_is_quiet)) << one.report() << "; " << two.report();
  EXPECT_EQ(rt.report().arrays, 0u);
  EXPECT_TRUE(comes_true(rt, [&] { return facts_of(getpid()).descriptors <= mine.descriptors; }));
  EXPECT_TRUE(comes_true(rt, [&] { return one.process.facts().descriptors <= theirs.descriptors; }));
  EXPECT_LE(facts_of(getpid()).threads, mine.threads);
  EXPECT_LE(one.process.facts().threads, theirs.threads);
}

/// An owner and the worker "one", which reach each other by a proxy alone.
struct behind_a_proxy {
  behind_a_proxy() { EXPECT_TRUE(rt->wait_for_nodes(1, 10s)); }
  std::unique_ptr<troupe::runtime> owner() const {
    troupe::options o = owner_options(proof);
    o.cluster.announce = {between.address()};
    return std::make_unique<troupe::runtime>(std::move(o));
  }
  std::string join() {
    const std::string address = rt->addresses().front();
    between.forward_to(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    return between.address();
  }
  const secret proof;
  support::proxy between;
  std::unique_ptr<troupe::runtime> rt = owner();
  worker one{"one", proof, join(), "-"};
  chains stays{*rt, chains::results::stay_there, 4, 500}, home{*rt, chains::results::come_home, 4, 500};
  void grow(int home_steps) {
    stays.grow(20, scope::at("one"));
    home.grow(home_steps, scope::at("one"));
  }
  void expect_all_once() {
    EXPECT_EQ(stays.wrong(), 0);
    EXPECT_EQ(home.wrong(), 0);
    EXPECT_EQ(one.ran(), stays.spawned() + home.spawned());
  }
};

TEST(silence, connections_reset_every_half_second_lose_nothing_and_repeat_nothing) {
  behind_a_proxy n;
  for (int resets = 0; resets < 10; ++resets) {
    const auto since = clock::now();
    n.grow(20);
    ASSERT_TRUE(n.stays.first_in_line_end(10s));
    n.between.cut();
    ASSERT_TRUE(n.rt->wait_all_for(10s)) << "after " << resets << " resets";
    comes_true(
        *n.rt, [] { return false; },
        std::chrono::milliseconds(500) - std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - since));
  }
  n.expect_all_once();
  EXPECT_GE(n.between.connections(), 12);
}

// Messages that the worker has got, but could not say so, come again over the next connection.
TEST(silence, messages_that_are_late_overtaken_and_sent_twice_lose_nothing_and_repeat_nothing) {
  behind_a_proxy n;
  n.between.delay(10ms);
  for (int round = 0; round < 5; ++round) {
    n.grow(5);
    ASSERT_TRUE(n.stays.first_in_line_end(10s));
    const std::uint64_t ran = n.one.ran();
    n.between.hold_back(true);
    n.grow(5);
    ASSERT_TRUE(comes_true(*n.rt, [&] { return n.one.ran() > ran; }));
    n.between.cut();
    n.between.hold_back(false);
    ASSERT_TRUE(n.rt->wait_all_for(20s)) << "after " << round << " rounds";
  }
  n.expect_all_once();
  EXPECT_GE(n.rt->links().at(0).resets, 5u);
}

}  // namespace
