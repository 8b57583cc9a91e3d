// What this file is for: bodies through a fabric: when it is used, when it is not, and that no fault gives wrong bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <string>

#include "imagined_fabric.hpp"
#include "net/tcp/tcp.hpp"
#include "tcp_network.hpp"

namespace wires {

using kind = node::kind;

/// Nodes with fabrics of their own in one imagined space.
class fabric : public ::testing::Test {
 protected:
  /// The fabrics of nodes, in the order in which those are made; null: none.
  std::deque<std::unique_ptr<bulk_fabric>> next_;
  std::unique_ptr<network> network_ = fabric_network([this]() -> std::unique_ptr<bulk_fabric> {
    if (next_.empty()) return space_.make();
    auto f = std::move(next_.front());
    next_.pop_front();
    return f;
  });
  imagined_space space_;

  std::unique_ptr<node> begin(const std::string& name) {
    transport_options o;
    o.self.id = node_id::random();
    o.self.incarnation = 1;
    o.self.name = name;
    o.self.cluster = "test";
    o.listen = {network_->anywhere()};
    auto n = std::make_unique<node>(*network_, o);
    n->start();
    return n;
  }
  void join(node& a, node& b) {
    const std::size_t before = b.count(kind::up);
    a.wire().dial(b.address());
    ASSERT_TRUE(in_time([&] { return a.with(b) && b.with(a) && b.count(kind::up) == before + 1; }));
  }
  /// Sends until one has come through the fabric, which is ready some time after the session.
  bool until_used(node& a, node& b) {
    const bytes body = noise(300'000, 1);
    return in_time([&] {
      const std::size_t before = b.count(kind::arrived);
      a.with(b)->send_bulk(as_bytes("early"), {std::span(body)}, [](bool) {});
      return in_time([&] { return b.count(kind::arrived) == before + 1; }) && a.with(b)->fabric_sent() != 0;
    });
  }
  /// Sends through whatever there is, and expects it to arrive as it was.
  void expect_arrives(node& a, node& b, const std::string& head, std::size_t size) {
    const bytes body = noise(size, 7);
    const std::size_t before = b.count(kind::arrived);
    std::atomic<int> ok{0};
    a.with(b)->send_bulk(as_bytes(head), {std::span(body)}, [&](bool all) { ok = all ? 1 : -1; });
    ASSERT_TRUE(in_time([&] { return b.count(kind::arrived) == before + 1 && ok != 0; }));
    EXPECT_EQ(ok, 1);
    EXPECT_TRUE(b.body(head) == body);
  }
  /// Two that join as the test has set their space up: long bodies take the socket.
  void expect_not_used() {
    const auto a = begin("a"), b = begin("b");
    join(*a, *b);
    for (int i = 0; i < 3; ++i) expect_arrives(*a, *b, "there", 3'000'000);
    EXPECT_EQ(space_.parts, 0);
  }
};

TEST_F(fabric, carries_long_bodies_and_leaves_the_socket_alone) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  ASSERT_TRUE(until_used(*a, *b));
  const auto from = a->with(*b), to = b->with(*a);
  const std::uint64_t sent = from->bytes_sent(), through = from->fabric_sent(), received = to->fabric_received();
  expect_arrives(*a, *b, "long", 20'000'000);
  EXPECT_EQ(from->fabric_sent() - through, 20'000'000u);
  EXPECT_EQ(to->fabric_received() - received, 20'000'000u);
  EXPECT_LT(from->bytes_sent() - sent, 20'002'000u) << "it went both ways";
  EXPECT_EQ(to->fabric_sent(), 0u);
}

TEST_F(fabric, is_left_out_for_short_bodies) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  ASSERT_TRUE(until_used(*a, *b));
  const std::uint64_t through = a->with(*b)->fabric_sent();
  expect_arrives(*a, *b, "short", 10'000);
  EXPECT_EQ(a->with(*b)->fabric_sent(), through);
}

TEST_F(fabric, is_not_used_with_a_peer_that_has_none) {
  next_.push_back(space_.make());
  next_.push_back(nullptr);
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  for (int i = 0; i < 3; ++i) {
    expect_arrives(*a, *b, "there", 3'000'000);
    expect_arrives(*b, *a, "back", 3'000'000);
  }
  EXPECT_EQ(a->with(*b)->fabric_sent() + b->with(*a)->fabric_sent(), 0u);
}

TEST_F(fabric, of_another_kind_is_not_used) {
  next_.push_back(space_.make("imagined, version 1"));
  next_.push_back(space_.make("imagined, version 2"));
  expect_not_used();
}

TEST_F(fabric, that_does_not_reach_the_peer_is_not_used) {
  space_.unreachable = true;
  expect_not_used();
}

TEST_F(fabric, is_not_used_before_something_has_come_through) {
  space_.swallows_greetings = true;
  expect_not_used();
}

TEST_F(fabric, that_breaks_before_it_was_used_is_left_and_the_session_goes_on) {
  space_.breaks_with_a_greeting = true;
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  for (int i = 0; i < 5; ++i) {
    expect_arrives(*a, *b, "there", 3'000'000);
    expect_arrives(*b, *a, "back", 3'000'000);
  }
  EXPECT_EQ(a->count(kind::down), 0u);
  EXPECT_EQ(space_.parts, 0);
}

TEST_F(fabric, that_breaks_ends_the_session_and_is_given_up_after_some_times) {
  const auto a = begin("a"), b = begin("b");
  const bytes body = noise(20'000'000, 3);
  for (int times = 0; times < 3; ++times) {
    space_.parts_until_break = -1;
    join(*a, *b);
    ASSERT_TRUE(until_used(*a, *b));
    const std::size_t began = b->count(kind::arriving), ended = b->count(kind::arrived);
    space_.parts_until_break = 2;
    std::atomic<int> answer{0};
    a->with(*b)->send_bulk(as_bytes("cut short"), {std::span(body)}, [&](bool all) { answer = all ? 1 : -1; });
    ASSERT_TRUE(in_time([&] { return !a->with(*b) && !b->with(*a); }));
    EXPECT_EQ(answer, -1);
    EXPECT_EQ(code_of(a->events(kind::down).back().why), errc::node_lost);
    EXPECT_EQ(b->count(kind::arriving), began + 1);
    ASSERT_EQ(b->count(kind::arrived), ended + 1) << "it has to be answered for";
    EXPECT_FALSE(b->events(kind::arrived).back().whole);
  }
  space_.parts_until_break = 0;
  const int parts = space_.parts;
  join(*a, *b);
  for (int i = 0; i < 3; ++i) expect_arrives(*a, *b, "at last", 20'000'000);
  EXPECT_EQ(space_.parts, parts);
}

#ifdef TROUPE_HAVE_UCX
TEST_F(fabric, of_ucx_carries_long_bodies) {
  next_.push_back(real_ucx());
  next_.push_back(real_ucx());
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  ASSERT_TRUE(until_used(*a, *b));
  const std::uint64_t through = a->with(*b)->fabric_sent();
  expect_arrives(*a, *b, "long", 50'000'001);
  EXPECT_EQ(a->with(*b)->fabric_sent() - through, 50'000'001u);
}

TEST_F(fabric, of_ucx_works_again_after_sessions_have_ended) {
  next_.push_back(real_ucx());
  next_.push_back(real_ucx());
  const auto a = begin("a"), b = begin("b");
  const bytes body = noise(64u << 20, 4);
  for (int times = 0; times < 6; ++times) {
    join(*a, *b);
    ASSERT_TRUE(until_used(*a, *b)) << times;
    // In the middle of something, by one side or the other.
    const std::size_t before = b->count(kind::arriving);
    std::atomic<int> answer{0};
    a->with(*b)->send_bulk(as_bytes("cut short"), {std::span(body)}, [&](bool all) { answer = all ? 1 : -1; });
    ASSERT_TRUE(in_time([&] { return b->count(kind::arriving) == before + 1; }));
    (times % 2 == 0 ? a->with(*b) : b->with(*a))->close(nullptr);
    ASSERT_TRUE(in_time([&] { return !a->with(*b) && !b->with(*a); }));
    EXPECT_NE(answer, 0);
    ASSERT_EQ(b->count(kind::arrived), b->count(kind::arriving));
    if (b->events(kind::arrived).back().whole) {
      EXPECT_TRUE(b->body("cut short") == body);
    }
  }
}
#endif

}  // namespace wires
