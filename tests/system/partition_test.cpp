// What this file is for: hosts that do not reach each other for a while, in both directions or in one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "tests/support/netns.hpp"
#include "tests/system/cluster.hpp"

namespace {

using namespace test;

const scope on_workers = scope::at("one") | scope::at("two");

struct partition : testing::Test {
  void SetUp() override {
    if (const auto why = network::why_not(); !why.empty()) GTEST_SKIP() << why;
    net = std::make_unique<network>(3);
    rt = owner_on_host_0(*net, proof);
    ASSERT_NE(rt, nullptr);
    const std::string join = net->address(0) + ":4711";
    one = std::make_unique<worker>("one", proof, join, net->address(1) + ":4711", net->on(1));
    two = std::make_unique<worker>("two", proof, join, net->address(2) + ":4711", net->on(2));
    ASSERT_TRUE(rt->wait_for_nodes(2, 10s));
  }
  // The host of "one" is cut off by `how`; then all is healed.
  template <class F>
  void survive(double detected_max, F&& how) {
    chains work(*rt, chains::results::come_home, 8, 2'000);
    work.grow(200, on_workers);
    ASSERT_TRUE(comes_true(*rt, [&] { return tasks_of(*rt, "one") > 50; }));
    const auto cut = clock::now();
    how();
    expect_gone_and_flowing(*rt, "one", cut, detected_max + 0.3, work);  // `how` takes a moment
    net->heal();
    const auto healed = clock::now();
    ASSERT_TRUE(comes_true(*rt, [&] { return is_there(*rt, "one"); })) << "it was not taken in again";
    RecordProperty("again_ms", static_cast<int>(seconds_since(healed) * 1000));
    const std::uint64_t ran = one->ran();
    work.grow(10, scope::at("one"));
    ASSERT_TRUE(rt->wait_all_for(20s));
    EXPECT_EQ(work.wrong(), 0);
    EXPECT_GE(one->ran(), ran + 80);
  }

  secret proof;
  std::unique_ptr<network> net;
  std::unique_ptr<troupe::runtime> rt;
  std::unique_ptr<worker> one, two;
};

TEST_F(partition, a_worker_that_is_cut_off_is_replaced_and_comes_back_once_that_has_healed) {
  survive(3.5, [&] { net->cut({1}, {0, 2}); });
}

TEST_F(partition, a_worker_that_cannot_be_heard_by_anyone_counts_as_gone) {
  survive(3.5, [&] {
    net->drop(1, 0);
    net->drop(1, 2);
  });
}

TEST_F(partition, a_worker_that_can_hear_no_one_counts_as_gone) {
  // The others may still hear it, and hear that it hears nothing.
  survive(3.5, [&] {
    net->drop(0, 1);
    net->drop(2, 1);
  });
}

TEST_F(partition, a_short_one_loses_nothing_and_repeats_nothing) {
  chains work(*rt, chains::results::stay_there, 8, 1'000);
  work.grow(200, on_workers);
  ASSERT_TRUE(comes_true(*rt, [&] { return tasks_of(*rt, "one") > 50; }));
  net->cut({1}, {0, 2});
  EXPECT_FALSE(comes_true(
      *rt, [&] { return rt->nodes().size() != 2; }, 1500ms));
  net->heal();
  ASSERT_TRUE(rt->wait_all_for(20s));
  EXPECT_EQ(work.wrong(), 0);
  EXPECT_EQ(one->ran() + two->ran(), work.spawned());
}

}  // namespace
