// What this file is for: links that are slow: the work is right, and placement finds out what is not worth sending.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "tests/support/netns.hpp"
#include "tests/system/cluster.hpp"

namespace {

using namespace test;

constexpr troupe::index_t tile = 8192, tiles = 16;  // of 64 KiB

struct slow_links : testing::Test {
  void SetUp() override {
    if (const auto why = network::why_not(); !why.empty()) GTEST_SKIP() << why;
    net = std::make_unique<network>(2);
    rt = owner_on_host_0(*net, proof);
    ASSERT_NE(rt, nullptr);
    one = std::make_unique<worker>("one", proof, net->address(0) + ":4711", net->address(1) + ":4711", net->on(1));
    ASSERT_TRUE(rt->wait_for_nodes(1, 10s));
  }
  void slow_down(long bits_per_second) const {
    net->slow_down(0, bits_per_second);
    net->slow_down(1, bits_per_second);
  }
  /// Spawns one task a tile of new data; returns how many of them ran on "one".
  std::uint64_t round(std::uint64_t us, const scope& where = scope::at("one") | scope::here()) {
    const std::uint64_t before = tasks_of(*rt, "one");
    std::vector<std::uint64_t> start(static_cast<std::size_t>(tiles * tile));
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = hashed(i, ++seed_);  // which nothing compresses
    const auto data = rt->adopt(std::vector(start), {tiles * tile}, troupe::tiles(tile));
    rt->for_each({.where = where}, troupe::grid(tiles * tile), link_on, troupe::update(data), std::uint64_t{3}, us);
    EXPECT_TRUE(rt->wait_all_for(40s));
    const auto v = data.read();
    int wrong = 0;
    for (troupe::index_t i = 0; i < tiles * tile; ++i)
      wrong += v(i) == hashed(start[static_cast<std::size_t>(i)], 3) ? 0 : 1;
    EXPECT_EQ(wrong, 0);
    return tasks_of(*rt, "one") - before;
  }

  secret proof;
  std::unique_ptr<network> net;
  std::unique_ptr<troupe::runtime> rt;
  std::unique_ptr<worker> one;

 private:
  std::uint64_t seed_ = 0;
};

TEST_F(slow_links, get_little_of_the_work_once_they_are_known) {
  slow_down(16'000'000);                                                         // a tile takes 33 ms each way
  for (int i = 0; i < 2; ++i) EXPECT_EQ(round(1'000, scope::at("one")), tiles);  // which says what it costs
  std::uint64_t there = 0;
  for (int i = 0; i < 5; ++i) there += round(1'000);
  EXPECT_LE(there, 5u * tiles / 8) << "of " << 5 * tiles;
  ASSERT_EQ(rt->nodes().size(), 1u);
}

TEST_F(slow_links, hold_up_no_sign_of_life) {
  const std::string id = rt->nodes().front().id;
  slow_down(4'000'000);
  EXPECT_EQ(round(0, scope::at("one")), tiles);  // some four seconds of transfers, in which nothing else would pass
  ASSERT_EQ(rt->nodes().size(), 1u);
  EXPECT_EQ(rt->nodes().front().id, id);
  EXPECT_EQ(one->ran(), tiles);
  slow_down(0);
  EXPECT_EQ(round(0, scope::at("one")), tiles);
}

}  // namespace
