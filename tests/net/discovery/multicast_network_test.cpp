// What this file is for: discovery by multicast between hosts of a network, which falls apart and heals.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "heard.hpp"
#include "net/discovery.hpp"
#include "net/discovery/datagram.hpp"
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
  static constexpr const char* ipv4_group = "239.255.84.82";

  static bool has_v6() { return std::filesystem::exists("/proc/net/if_inet6"); }
  std::string link_local(int host) const {
    std::istringstream words(net->run_on(host, {"ip", "-6", "-o", "address", "show", "dev", "eth0", "scope", "link"}));
    for (std::string w; words >> w;)
      if (w == "inet6" && words >> w) return w.substr(0, w.find('/'));
    return "none";
  }

  void SetUp() override {
    if (const auto why = network::why_not(); !why.empty()) GTEST_SKIP() << why;
    net = std::make_unique<network>(hosts);
    told = std::vector<heard>(hosts);
    nodes.resize(hosts);
  }
  void start(int host, std::vector<std::string> interfaces = {}, const std::string& group = ipv4_group,
             const std::string& listens = "0.0.0.0") {
    discovery_options o;
    o.multicast.emplace().announce_every = 100ms;
    o.multicast->interfaces = std::move(interfaces);
    o.multicast->group = group;
    o.tell_again = 50ms;
    o.self.id = node_id::random();
    o.self.cluster = "c";
    o.self.listens_on = {{listens, 4711}};
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

// Over IPv6 alone, at link-local addresses, which lead somewhere on one interface only.
TEST_F(multicast_network, finds_hosts_by_ipv6_at_addresses_that_can_be_dialled) {
  if (!has_v6()) GTEST_SKIP() << "there is no IPv6 here";
  for (int i = 0; i < hosts; ++i) start(i, {"eth0"}, "", "::");
  EXPECT_TRUE(told[0].waits_for({link_local(1) + "%eth0", 4711}));
  EXPECT_TRUE(told[1].waits_for({link_local(0) + "%eth0", 4711}));
  EXPECT_TRUE(told[2].waits_for({link_local(0) + "%eth0", 4711}));
}

// A node that listens on addresses of IPv4 alone is not looked for at one of IPv6.
TEST_F(multicast_network, tells_of_each_protocol_what_can_be_reached_by_it) {
  if (!has_v6()) GTEST_SKIP() << "there is no IPv6 here";
  start(0, {"eth0"});
  start(1, {"eth0"}, ipv4_group, "::");
  start(2, {"eth0"}, ipv4_group, "0.0.0.0");
  EXPECT_TRUE(told[0].waits_for({link_local(1) + "%eth0", 4711}));
  EXPECT_TRUE(hears(0, 1));
  EXPECT_TRUE(hears(0, 2, 5));
  EXPECT_THAT(told[0].all(), Not(Contains(endpoint{link_local(2) + "%eth0", 4711})));
  EXPECT_EQ(nodes[0]->counts().replayed, 0u);
}

// A datagram that is sent to a host and not to the group is not looked at, whichever node has signed it.
TEST_F(multicast_network, over_ipv6_takes_only_what_was_sent_to_its_group) {
  if (!has_v6()) GTEST_SKIP() << "there is no IPv6 here";
  start(0, {"eth0"}, "", "::");
  datagram_signer member{"c", {{}}};
  // False while the address of the sender is being probed.
  const auto send = [&](const std::string& to, std::uint64_t counter) {
    bool sent = false;
    announcement a;
    a.node.bytes.fill(9);
    a.counter = counter;
    a.listens_on = {{"10.9.9.9", static_cast<std::uint16_t>(counter)}};
    const auto d = member.write(a);
    std::thread([&] {
      ASSERT_EQ(::setns(net->on(1).net_namespace, CLONE_NEWNET), 0);
      sockaddr_in6 at{};
      at.sin6_family = AF_INET6;
      at.sin6_port = htons(multicast_options{}.port);
      at.sin6_scope_id = ::if_nametoindex("eth0");
      ASSERT_EQ(::inet_pton(AF_INET6, to.c_str(), &at.sin6_addr), 1);
      const int s = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      sent = ::sendto(s, d.data(), d.size(), 0, reinterpret_cast<const sockaddr*>(&at), sizeof at) ==
             static_cast<ssize_t>(d.size());
      ::close(s);
    }).join();
    return sent;
  };
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  int to_it_alone = 0;
  for (std::uint64_t n = 100; (told[0].all().empty() || to_it_alone < 3) && std::chrono::steady_clock::now() < deadline;
       ++n) {
    to_it_alone += send(link_local(0), n - 99) ? 1 : 0;
    send(multicast_options{}.group_v6, n);
  }
  ASSERT_GE(to_it_alone, 3);
  ASSERT_FALSE(told[0].all().empty());
  for (const endpoint& e : told[0].all()) EXPECT_GE(e.port, 100);
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
