// What this file is for: nodes that announce themselves by multicast on loopback, and strangers that disturb them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "heard.hpp"
#include "net/discovery.hpp"
#include "net/discovery/datagram.hpp"
#include "tests/net/credentials/files.hpp"
#include "tests/support/comes_true.hpp"

namespace {

using namespace troupe;
using namespace troupe::net;
using namespace std::chrono_literals;
using test::comes_true;
using test::complaint;
using test::heard;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

sockaddr_in address(const std::string& host, std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  ::inet_pton(AF_INET, host.c_str(), &a.sin_addr);
  return a;
}

credentials::secret_bytes secret_of(std::uint8_t b) {
  credentials::secret_bytes s{};
  s.fill(b);
  return s;
}

// Group and port of a test's own, so that those that run beside it hear nothing of it.
multicast_options quiet_place() {
  static std::atomic<int> groups{0};
  multicast_options m;
  m.group = "239.255." + std::to_string(::getpid() % 250 + 1) + "." + std::to_string(++groups % 250 + 1);
  m.group_v6.clear();
  m.port = static_cast<std::uint16_t>(20000 + ::getpid() % 10000);
  m.interfaces = {"lo"};
  return m;
}

discovery_options node_at(const multicast_options& where, std::uint16_t port, std::uint8_t secret = 1,
                          const std::string& cluster = "c") {
  discovery_options o;
  o.multicast = where;
  o.self.id = node_id::random();
  o.self.incarnation = 1;
  o.self.cluster = cluster;
  o.self.listens_on = {{"", port}};
  o.secrets = {secret_of(secret)};
  return o;
}

// A host on the network that sends what it likes.
class stranger {
 public:
  explicit stranger(const multicast_options& where, const std::string& from = "127.0.0.2")
      : to_(address(where.group, where.port)), socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in own = address(from, 0);
    const in_addr lo{htonl(INADDR_LOOPBACK)};
    ready_ = ::bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0 &&
             ::setsockopt(socket_, IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof lo) == 0;
  }
  stranger(const stranger&) = delete;
  stranger& operator=(const stranger&) = delete;
  ~stranger() { ::close(socket_); }

  void send(std::span<const std::byte> bytes) {
    ASSERT_TRUE(ready_);
    ASSERT_EQ(::sendto(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to_),
                       sizeof to_),
              static_cast<ssize_t>(bytes.size()));
  }
  // True if anything has answered the stranger.
  bool has_mail() const {
    char byte;
    return ::recv(socket_, &byte, 1, MSG_DONTWAIT) >= 0;
  }

 private:
  sockaddr_in to_;
  int socket_;
  bool ready_ = false;
};

announcement announced(std::uint64_t counter, std::uint64_t incarnation = 1) {
  announcement a;
  a.node.bytes.fill(9);
  a.incarnation = incarnation;
  a.counter = counter;
  a.listens_on = {{"10.9.9.9", static_cast<std::uint16_t>(counter)}};
  return a;
}

// A node that says nothing after its first datagram, so that counts are exact.
class multicast_listener : public testing::Test {
 protected:
  multicast_listener() {
    where.announce_every = 1h;
    node = make_discovery(node_at(where, 4711));
    node->start(told.teller());
    EXPECT_TRUE(comes_true([&] { return node->counts().own == 1; }));
  }
  void expect_count(std::uint64_t discovery_counts::*what, std::uint64_t n) {
    EXPECT_TRUE(comes_true([&] { return node->counts().*what >= n; }));
    EXPECT_EQ(node->counts().*what, n);
  }
  void expect_nothing_else_accepted(std::uint64_t n) {
    EXPECT_EQ(node->counts().accepted, n);
    EXPECT_EQ(told.all().size(), n);
  }

  multicast_options where = quiet_place();
  heard told;
  std::unique_ptr<discovery> node;
  datagram_signer member{"c", {secret_of(1)}};
  stranger sender{where};
};

TEST(multicast, makes_nodes_of_one_cluster_find_each_other_and_nobody_else) {
  const auto where = quiet_place();
  heard one, two, other_cluster, other_secret;
  const auto a = make_discovery(node_at(where, 1)), b = make_discovery(node_at(where, 2)),
             c = make_discovery(node_at(where, 3, 1, "other")), d = make_discovery(node_at(where, 4, 2));
  a->start(one.teller());
  c->start(other_cluster.teller());
  d->start(other_secret.teller());
  b->start(two.teller());
  EXPECT_TRUE(one.waits_for({"127.0.0.1", 2}));  // the later one is heard at once
  EXPECT_TRUE(two.waits_for({"127.0.0.1", 1}));  // the earlier one when it announces itself again
  EXPECT_TRUE(comes_true([&] { return a->counts().other_cluster > 0 && a->counts().forged > 0; }));
  EXPECT_TRUE(comes_true([&] { return c->counts().other_cluster > 2 && d->counts().forged > 1; }));
  EXPECT_THAT(other_cluster.all(), IsEmpty());
  EXPECT_THAT(other_secret.all(), IsEmpty());
  EXPECT_THAT(one.all(), testing::Each(endpoint{"127.0.0.1", 2}));
  EXPECT_TRUE(comes_true([&] { return a->counts().own > 0; }));
}

TEST(multicast, announces_about_as_often_as_it_says) {
  auto where = quiet_place();
  where.announce_every = 50ms;
  heard none;
  const auto a = make_discovery(node_at(where, 1));
  const auto before = std::chrono::steady_clock::now();
  a->start(none.teller());
  EXPECT_TRUE(comes_true([&] { return a->counts().sent >= 11; }));
  EXPECT_GE(std::chrono::steady_clock::now() - before, 10 * 40ms);
  EXPECT_THAT(none.all(), IsEmpty());
}

TEST(multicast, works_while_the_secret_is_replaced) {
  const auto where = quiet_place();
  auto with_both = node_at(where, 1, 2);
  with_both.secrets.push_back(secret_of(1));
  heard both, fresh;
  const auto a = make_discovery(with_both), b = make_discovery(node_at(where, 2, 1)),
             c = make_discovery(node_at(where, 3, 2));
  for (const auto& d : {a.get(), b.get(), c.get()}) d->start(d == a.get() ? both.teller() : fresh.teller());
  EXPECT_TRUE(both.waits_for({"127.0.0.1", 2}));
  EXPECT_TRUE(both.waits_for({"127.0.0.1", 3}));
  EXPECT_TRUE(fresh.waits_for({"127.0.0.1", 1}));
}

TEST(multicast, needs_a_secret_a_cluster_and_options_that_make_sense) {
  const auto wrong = [](auto&& change, errc code = errc::bad_argument) {
    auto o = node_at(quiet_place(), 1);
    change(o);
    return complaint(code, [&] {
      const auto d = make_discovery(o);
      d->start([](auto) {});
    });
  };
  EXPECT_THAT(wrong([](auto& o) { o.secrets.clear(); }), HasSubstr("secret"));
  EXPECT_THAT(wrong([](auto& o) { o.self.cluster.clear(); }), HasSubstr("cluster"));
  EXPECT_THAT(wrong([](auto& o) { o.multicast->interfaces = {"no0"}; }), HasSubstr("'no0'"));
  for (const char* group : {"10.0.0.1", "ff02::1", "here", ""})
    EXPECT_THAT(wrong([&](auto& o) { o.multicast->group = group; }), HasSubstr("multicast group"));
  wrong([](auto& o) { o.multicast->port = 0; });
  wrong([](auto& o) { o.multicast->hops = 256; });
  wrong([](auto& o) { o.multicast->announce_every = 0ms; });
  wrong([](auto& o) { o.multicast->each_per_second = 0; });
}

TEST_F(multicast_listener, believes_a_member_and_fills_in_where_it_has_come_from) {
  auto a = announced(1);
  a.listens_on = {{"", 1}, {"0.0.0.0", 2}, {"::", 3}, {"node.cluster", 4}};
  sender.send(member.write(a));
  EXPECT_TRUE(told.waits_for({"node.cluster", 4}));
  EXPECT_THAT(told.all(), ElementsAre(endpoint{"127.0.0.2", 1}, endpoint{"127.0.0.2", 2}, endpoint{"127.0.0.2", 3},
                                      endpoint{"node.cluster", 4}));
}

TEST_F(multicast_listener, drops_what_is_forged_and_counts_it) {
  datagram_signer outsider("c", {secret_of(2)});
  for (std::uint64_t i = 1; i <= 20; ++i) sender.send(outsider.write(announced(i)));
  expect_count(&discovery_counts::forged, 20);
  expect_nothing_else_accepted(0);
}

TEST_F(multicast_listener, drops_what_is_replayed_and_counts_it) {
  const auto first = member.write(announced(1)), second = member.write(announced(2)),
             earlier_life = member.write(announced(3, 0));
  sender.send(second);
  sender.send(first);  // late, not repeated
  EXPECT_TRUE(told.waits_for({"10.9.9.9", 1}));
  stranger other(where, "127.0.0.3");
  for (int i = 0; i < 5; ++i) {
    other.send(first);
    other.send(second);
    other.send(earlier_life);
  }
  expect_count(&discovery_counts::replayed, 15);
  expect_nothing_else_accepted(2);
}

TEST_F(multicast_listener, drops_its_own_words_from_whomever) {
  // Recorded by a host that listens, and sent again from elsewhere.
  auto o = node_at(quiet_place(), 1);
  o.multicast->announce_every = 1h;
  heard none;
  const auto d = make_discovery(o);
  d->start(none.teller());
  announcement own{o.self.id, 1, 77, {{"10.9.9.9", 1}}};
  stranger other(*o.multicast);
  other.send(member.write(own));
  EXPECT_TRUE(comes_true([&] { return d->counts().own == 2; }));
  EXPECT_THAT(none.all(), IsEmpty());
}

TEST_F(multicast_listener, drops_what_is_cut_or_too_large_or_of_other_clusters_and_versions) {
  const auto good = member.write(announced(1));
  for (const std::size_t n : {0, 1, 4, 12, 28}) sender.send(std::span(good).first(n));
  auto large = good;
  for (const std::size_t n : {513, 1472, 9000, 60000}) {
    large.resize(n);
    sender.send(large);
  }
  expect_count(&discovery_counts::malformed, 9);
  for (const std::size_t n : {29, 45, 61}) sender.send(std::span(good).first(n));
  large.resize(512);
  sender.send(large);
  expect_count(&discovery_counts::forged, 4);
  auto other = good;
  other[4] = std::byte{2};
  sender.send(other);
  expect_count(&discovery_counts::other_version, 1);
  datagram_signer elsewhere("elsewhere", {secret_of(1)});
  sender.send(elsewhere.write(announced(1)));
  expect_count(&discovery_counts::other_cluster, 1);
  expect_nothing_else_accepted(0);
}

TEST_F(multicast_listener, answers_nobody) {
  datagram_signer outsider("c", {secret_of(2)});
  for (std::uint64_t i = 1; i <= 20; ++i) sender.send(outsider.write(announced(i)));
  sender.send(member.write(announced(1)));
  EXPECT_TRUE(told.waits_for({"10.9.9.9", 1}));
  EXPECT_FALSE(sender.has_mail());
  EXPECT_EQ(node->counts().sent, 1u);  // its first announcement
}

std::chrono::nanoseconds processor_time(int who) {
  rusage u{};
  ::getrusage(who, &u);
  return std::chrono::seconds(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         std::chrono::microseconds(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

TEST_F(multicast_listener, drops_a_flood_from_one_address_cheaply_and_still_hears_others) {
  datagram_signer outsider("c", {secret_of(2)});
  const auto forged = outsider.write(announced(1));
  const auto others = [] { return processor_time(RUSAGE_SELF) - processor_time(RUSAGE_THREAD); };
  const auto before = others();
  constexpr std::uint64_t flood = 10'000;
  for (std::uint64_t i = 0; i < flood; ++i) sender.send(forged);
  // Another address is not affected, as soon as the system lets a datagram of it in.
  stranger other(where, "127.0.0.3");
  std::uint64_t tries = 0;
  EXPECT_TRUE(comes_true([&] {
    other.send(member.write(announced(++tries)));
    return node->counts().accepted > 0;
  }));
  // Datagrams that were lost are known from the next one that is not.
  EXPECT_TRUE(comes_true([&] {
    const auto c = node->counts();
    if (c.received + c.lost == flood + tries + c.sent) return true;
    other.send(member.write(announced(++tries)));
    return comes_true([&, before = c.received] { return node->counts().received > before; }) && false;
  })) << node->counts().received
      << " + " << node->counts().lost;
  const auto c = node->counts();
  EXPECT_LE(c.forged, 110u);
  EXPECT_EQ(c.too_many + c.forged + c.accepted + c.own, c.received);
  EXPECT_EQ(c.too_many + c.forged + c.lost, flood + (tries - c.accepted));
  const auto spent = others() - before;
  RecordProperty("processor_us", static_cast<int>(spent / 1us));
  EXPECT_LT(spent, 400ms);  // 40 us each would be as dear as a connection
}

TEST_F(multicast_listener, ends_at_once_in_the_middle_of_a_flood) {
  std::atomic<bool> over{false};
  std::thread flood([&] {
    const std::vector<std::byte> bytes(100);
    while (!over) sender.send(bytes);
  });
  EXPECT_TRUE(comes_true([&] { return node->counts().too_many > 100; }));
  const auto before = std::chrono::steady_clock::now();
  node->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 2s);
  over = true;
  flood.join();
  EXPECT_GT(node->counts().too_many, 100u);  // what was counted is still known
}

}  // namespace
