// What this file is for: that the networks of tests connect, cut, slow down and vanish.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>
#include <chrono>
#include <memory>
#include <thread>

#include "tests/support/netns.hpp"

namespace {

using namespace test;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

// A datagram socket on a host of the network: made by a thread that has gone there.
class post {
 public:
  post(const network& net, int host) {
    const int space = net.on(host).net_namespace;
    std::thread([&] {
      if (::setns(space, CLONE_NEWNET) != 0) return;
      socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      const sockaddr_in own = to(net.address(host));
      bound_ = ::bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0;
    }).join();
  }
  post(const post&) = delete;
  post& operator=(const post&) = delete;
  ~post() { ::close(socket_); }

  bool send(const std::string& address, std::size_t bytes = 1) {
    const sockaddr_in a = to(address);
    const std::string text(bytes, 'x');
    return bound_ && ::sendto(socket_, text.data(), bytes, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&a),
                              sizeof a) == static_cast<ssize_t>(bytes);
  }
  bool gets_mail(std::chrono::milliseconds within) {
    pollfd p{socket_, POLLIN, 0};
    if (::poll(&p, 1, static_cast<int>(within.count())) != 1) return false;
    char byte;
    return ::recv(socket_, &byte, 1, 0) == 1;
  }

 private:
  static sockaddr_in to(const std::string& address) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(5000);
    ::inet_pton(AF_INET, address.c_str(), &a.sin_addr);
    return a;
  }
  int socket_ = -1;
  bool bound_ = false;
};

class networks : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = network::why_not(); !why.empty()) GTEST_SKIP() << why;
    net = std::make_unique<network>(3);
    for (int i = 0; i < 3; ++i) posts.push_back(std::make_unique<post>(*net, i));
  }
  bool passes(int from, int to) { return arrives(from, to, 20s); }
  // Nothing else tells that something is lost: 200 ms are 1,000 times what it takes otherwise.
  bool is_lost(int from, int to) { return !arrives(from, to, 200ms); }
  bool arrives(int from, int to, std::chrono::milliseconds within) {
    EXPECT_TRUE(posts[static_cast<std::size_t>(from)]->send(net->address(to)));
    return posts[static_cast<std::size_t>(to)]->gets_mail(within);
  }
  std::unique_ptr<network> net;
  std::vector<std::unique_ptr<post>> posts;
};

TEST_F(networks, connect_all_hosts_and_nobody_else) {
  EXPECT_EQ(net->size(), 3);
  for (int from = 0; from < 3; ++from)
    for (int to = 0; to < 3; ++to) EXPECT_TRUE(passes(from, to)) << from << to;
  const auto here = run({"ip", "-4", "address"});
  EXPECT_THAT(here.out, Not(HasSubstr("10.77.0.")));
  EXPECT_THAT(net->run_on(1, {"ip", "-4", "address"}), HasSubstr("10.77.0.2/24"));
}

TEST_F(networks, lose_what_is_dropped_in_one_direction_only) {
  net->drop(0, 1);
  EXPECT_TRUE(is_lost(0, 1));
  EXPECT_TRUE(passes(1, 0));
  EXPECT_TRUE(passes(2, 1));
  net->heal();
  EXPECT_TRUE(passes(0, 1));
}

TEST_F(networks, fall_into_parts_and_heal) {
  net->cut({0}, {1, 2});
  for (const int other : {1, 2}) {
    EXPECT_TRUE(is_lost(0, other));
    EXPECT_TRUE(is_lost(other, 0));
  }
  EXPECT_TRUE(passes(1, 2));
  net->heal();
  for (const int other : {1, 2}) EXPECT_TRUE(passes(0, other) && passes(other, 0));
}

TEST_F(networks, lose_a_share) {
  net->lose(1, 100);
  EXPECT_TRUE(is_lost(0, 1));
  net->heal();
  net->lose(1, 50);
  int passed = 0;
  for (int i = 0; i < 400; ++i) posts[0]->send(net->address(1));
  net->heal();
  while (posts[1]->gets_mail(200ms)) ++passed;
  EXPECT_GT(passed, 100);
  EXPECT_LT(passed, 300);
}

TEST_F(networks, lose_a_host_whose_plug_is_pulled) {
  net->unplug(1);
  EXPECT_TRUE(is_lost(0, 1));
  EXPECT_FALSE(posts[1]->send(net->address(0)));
  EXPECT_TRUE(passes(0, 2));
  net->plug(1);
  // The switch takes it in again when it sees the link.
  bool back = false;
  for (int i = 0; i < 50 && !back; ++i) back = posts[0]->send(net->address(1)) && posts[1]->gets_mail(200ms);
  EXPECT_TRUE(back);
}

TEST_F(networks, are_as_slow_as_is_asked_for) {
  // 110 kB: the first 64 leave at once, the others at 1 Mbit a second take 0.4 s. All find room where they arrive.
  constexpr int many = 80;
  const auto time_of = [&] {
    const auto before = std::chrono::steady_clock::now();
    for (int i = 0; i < many; ++i) posts[0]->send(net->address(1), 1400);
    int arrived = 0;
    auto last = before;
    while (arrived < many && posts[1]->gets_mail(1000ms)) {
      ++arrived;
      last = std::chrono::steady_clock::now();
    }
    return std::pair(arrived, last - before);
  };
  net->slow_down(0, 1'000'000);
  const auto [slow_ones, slow] = time_of();
  EXPECT_GE(slow_ones, many * 3 / 4);
  EXPECT_GT(slow, 200ms);
  net->slow_down(0, 0);
  const auto [fast_ones, fast] = time_of();
  EXPECT_EQ(fast_ones, many);
  EXPECT_LT(fast, slow);
}

TEST_F(networks, run_programs_on_their_hosts) {
  child c({"sh", "-c", "ip -4 -o address show dev eth0; read -r x"}, net->on(2));
  EXPECT_THAT(*c.line(), HasSubstr("10.77.0.3/24"));
  EXPECT_THROW(net->run_on(0, {"false"}), std::runtime_error);
}

TEST_F(networks, vanish_with_their_owner) {
  const auto spaces = [] {
    const auto all = run({"sh", "-c", "ls -l /proc/" + std::to_string(::getpid()) + "/fd | grep -c 'net:'"});
    return std::stoi(all.out);
  };
  const int before = spaces();
  EXPECT_GE(before, 4);
  net.reset();
  EXPECT_EQ(spaces(), before - 4);
}

}  // namespace
