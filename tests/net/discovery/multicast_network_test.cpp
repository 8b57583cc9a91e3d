// What this file is for: discovery by multicast between hosts of a network, which falls apart and heals.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "heard.hpp"
#include "net/discovery.hpp"
#include "tests/support/netns.hpp"

namespace {

using namespace troupe::net;
using namespace std::chrono_literals;
using test::heard;
using test::network;
using testing::Contains;
using testing::Not;

// A node of one cluster on each host.
class multicast_network : public testing::Test {
 protected:
  static constexpr int hosts = 3;

  void SetUp() override {
    if (const auto why = network::why_not(); !why.empty()) GTEST_SKIP() << why;
    net = std::make_unique<network>(hosts);
    told = std::vector<heard>(hosts);
    nodes.resize(hosts);
  }
  void start(int host, std::vector<std::string> interfaces = {}) {
    discovery_options o;
    o.multicast.emplace().announce_every = 100ms;
    o.multicast->interfaces = std::move(interfaces);
    o.tell_again = 50ms;
    o.self.id = node_id::random();
    o.self.cluster = "c";
    o.self.listens_on = {{"0.0.0.0", 4711}};
    o.secrets.emplace_back();
    auto& node = nodes[static_cast<std::size_t>(host)];
    node = make_discovery(o);
    // Threads are born where the one is that makes them.
    std::thread([&] {
      ASSERT_EQ(::setns(net->on(host).net_namespace, CLONE_NEWNET), 0);
      node->start(told[static_cast<std::size_t>(host)].teller());
    }).join();
  }
  endpoint at(int host) const { return {net->address(host), 4711}; }
  bool hears(int host, int other, std::ptrdiff_t more = 1) {
    auto& h = told[static_cast<std::size_t>(host)];
    return h.waits_for(at(other), std::ranges::count(h.all(), at(other)) + more);
  }
  std::unique_ptr<network> net;
  std::vector<heard> told;
  std::vector<std::unique_ptr<discovery>> nodes;
};

TEST_F(multicast_network, tells_hosts_of_each_other_at_the_addresses_they_can_be_reached_at) {
  for (int i = 0; i < hosts; ++i) start(i);
  for (int i = 0; i < hosts; ++i)
    for (int j = 0; j < hosts; ++j) EXPECT_TRUE(i == j || hears(i, j)) << i << j;
  for (int i = 0; i < hosts; ++i) EXPECT_THAT(told[static_cast<std::size_t>(i)].all(), Not(Contains(at(i))));
}

TEST_F(multicast_network, works_again_after_a_partition) {
  for (int i = 0; i < hosts; ++i) start(i, {"eth0"});
  EXPECT_TRUE(hears(0, 1) && hears(1, 2));
  net->cut({0}, {1, 2});
  EXPECT_TRUE(hears(1, 2, 3));  // the other side goes on
  const auto before = std::ranges::count(told[0].all(), at(1));
  EXPECT_TRUE(hears(2, 1, 5));
  EXPECT_LE(std::ranges::count(told[0].all(), at(1)), before);
  net->heal();
  EXPECT_TRUE(hears(0, 1) && hears(0, 2) && hears(1, 0));
}

TEST_F(multicast_network, takes_in_interfaces_that_come_up_later) {
  net->unplug(1);
  start(0);
  start(1);
  EXPECT_FALSE(told[1].all().size());
  net->plug(1);
  EXPECT_TRUE(hears(0, 1));
  EXPECT_TRUE(hears(1, 0));
}

TEST_F(multicast_network, says_that_nothing_gets_out_where_nothing_does) {
  net->unplug(0);
  start(0, {"eth0"});
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (nodes[0]->problems().empty() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(nodes[0]->problems().size(), 1u);
}

}  // namespace
