// What this file is for: the suite for wires: transfers on bulk.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>

#include "conformance.hpp"

namespace wires {

using kind = node::kind;

class bulk : public conformance {
 protected:
  /// Sends and counts the answers.
  void send(node& from, node& to, const std::string& head, const_pieces body) {
    from.with(to)->send_bulk(as_bytes(head), std::move(body), [this](bool ok) { ++(ok ? done_ : failed_); });
  }
  static const_pieces whole(const bytes& b) { return {std::span<const std::byte>(b)}; }

  std::atomic<std::size_t> done_{0}, failed_{0};
};

TEST_P(bulk, arrives_as_it_was_sent) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  const bytes small = noise(100, 1), odd = noise((3u << 20) + 17, 2), large = noise(32u << 20, 3);
  send(*a, *b, "small", whole(small));
  send(*a, *b, "odd", whole(odd));
  send(*a, *b, "large", whole(large));
  ASSERT_TRUE(until([&] { return b->count(kind::arrived) == 3 && done_ == 3; }));
  EXPECT_TRUE(b->body("small") == small);
  EXPECT_TRUE(b->body("odd") == odd);
  EXPECT_TRUE(b->body("large") == large);
  for (const auto& e : b->events(kind::arrived)) EXPECT_TRUE(e.whole);
}

TEST_P(bulk, of_nothing_arrives_too) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  send(*a, *b, "", {});
  send(*a, *b, "nothing", {});
  ASSERT_TRUE(until([&] { return b->count(kind::arrived) == 2 && done_ == 2; }));
  EXPECT_TRUE(b->events(kind::arrived).at(1).whole);
  EXPECT_EQ(as_text(b->events(kind::arrived).at(1).content), "nothing");
}

TEST_P(bulk, goes_from_many_pieces_into_many_others) {
  const bytes source = noise(6u << 20, 4);
  bytes target(source.size());
  auto scattering = std::make_unique<node>(*network_, options("b"));
  node* const b = scattering.get();
  b->destinations = [&](session&, std::span<const std::byte> head, std::uint64_t size) {
    pieces rows;
    const std::size_t row = as_text(head) == "narrow" ? 100 : 50'000;
    for (std::size_t at = 0; at < size; at += row)
      rows.push_back(std::span(target).subspan(at, std::min<std::size_t>(row, size - at)));
    return rows;
  };
  b->start();
  const auto a = begin("a");
  join(*a, *b);
  for (const std::string head : {"narrow", "wide"}) {
    for (const std::size_t row : {64u, 7'000u, 300'000u}) {
      const_pieces rows;
      for (std::size_t at = 0; at < source.size(); at += row)
        rows.push_back(std::span(source).subspan(at, std::min<std::size_t>(row, source.size() - at)));
      std::fill(target.begin(), target.end(), std::byte{0});
      const std::size_t before = b->count(kind::arrived);
      send(*a, *b, head, rows);
      ASSERT_TRUE(until([&] { return b->count(kind::arrived) == before + 1; }));
      EXPECT_TRUE(target == source) << head << " " << row;
    }
  }
}

TEST_P(bulk, nobody_wants_is_thrown_away_and_the_next_arrives) {
  const bytes body = noise(3u << 20, 5);
  bytes target(body.size());
  auto choosy = std::make_unique<node>(*network_, options("b"));
  node* const b = choosy.get();
  b->destinations = [&](session&, std::span<const std::byte> head, std::uint64_t) {
    return as_text(head) == "wanted" ? pieces{std::span(target)} : pieces{};
  };
  b->start();
  const auto a = begin("a");
  join(*a, *b);
  send(*a, *b, "unwanted", whole(body));
  send(*a, *b, "wanted", whole(body));
  ASSERT_TRUE(until([&] { return b->count(kind::arrived) == 2 && done_ == 2; }));
  EXPECT_TRUE(target == body);
}

TEST_P(bulk, in_both_directions_and_many_at_once_takes_turns) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  constexpr std::size_t many = 40;
  std::vector<bytes> bodies;
  for (unsigned i = 0; i < many; ++i) bodies.push_back(noise((i % 5 + 1) * 700'000, i));
  for (std::size_t i = 0; i < many; ++i) {
    send(*a, *b, std::to_string(i), whole(bodies[i]));
    send(*b, *a, std::to_string(i), whole(bodies[i]));
  }
  ASSERT_TRUE(until([&] { return b->count(kind::arrived) == many && a->count(kind::arrived) == many; }));
  ASSERT_TRUE(until([&] { return done_ == 2 * many; }));
  for (std::size_t i = 0; i < many; ++i) {
    EXPECT_TRUE(a->body(std::to_string(i)) == bodies[i]) << i;
    EXPECT_TRUE(b->body(std::to_string(i)) == bodies[i]) << i;
  }
}

TEST_P(bulk, that_is_short_does_not_wait_for_one_that_is_long) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  const bytes large = noise(64u << 20, 6), small = noise(1u << 20, 7);
  send(*a, *b, "long", whole(large));
  send(*a, *b, "short", whole(small));
  ASSERT_TRUE(until([&] { return b->count(kind::arrived) == 2; }));
  EXPECT_EQ(as_text(b->events(kind::arrived).at(0).content), "short");
}

TEST_P(bulk, is_told_on_one_thread_which_is_not_that_of_control) {
  if (GetParam().one_thread)
    GTEST_SKIP() << "control and bulk are one thread there: it is made to do the same each time";
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  const bytes body = noise(1u << 20, 8);
  for (int i = 0; i < 3; ++i) send(*a, *b, std::to_string(i), whole(body));
  a->with(*b)->send(as_bytes("frame"));
  ASSERT_TRUE(until([&] { return b->count(kind::arrived) == 3 && b->count(kind::frame) == 1; }));
  const auto arrived = b->events(kind::arrived), arriving = b->events(kind::arriving);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(arrived[i].thread, arriving[0].thread);
  EXPECT_NE(arrived[0].thread, b->events(kind::frame).at(0).thread);
}

TEST_P(bulk, that_cannot_end_is_answered_for_before_the_session_is_down) {
  if (GetParam().one_thread) GTEST_SKIP() << "what is told blocks here; loopback_test.cpp has the same with a cut path";
  std::mutex gate;
  std::unique_lock shut(gate);
  auto slow = std::make_unique<node>(*network_, options("b"));
  node* const b = slow.get();
  std::atomic<int> begun{0};
  b->also = [&](const node::event& e) {
    if (e.what == kind::arriving) {
      ++begun;
      const std::lock_guard wait(gate);
    }
  };
  b->start();
  auto answering = std::make_unique<node>(*network_, options("a"));
  node* const a = answering.get();
  std::atomic<std::size_t> answered_before_down{99};
  a->also = [&](const node::event& e) {
    if (e.what == kind::down) answered_before_down = done_ + failed_;
  };
  a->start();
  join(*a, *b);
  const bytes body = noise(64u << 20, 9);
  for (int i = 0; i < 12; ++i) send(*a, *b, std::to_string(i), whole(body));
  ASSERT_TRUE(until([&] { return begun == 1; }));
  const auto s = a->with(*b);
  s->close(nullptr);
  ASSERT_TRUE(until([&] { return answered_before_down != 99; }));
  EXPECT_EQ(a->count(kind::down), 1u);
  EXPECT_EQ(answered_before_down, 12u);
  EXPECT_GT(failed_, 0u);
  shut.unlock();
  ASSERT_TRUE(until([&] { return b->count(kind::down) == 1; }));
  EXPECT_EQ(b->count(kind::arriving), b->count(kind::arrived)) << "each one that began has been answered for";
  EXPECT_EQ(b->events().back().what, kind::down);
  EXPECT_FALSE(b->events(kind::arrived).back().whole);
  // Afterwards the caller is told at once.
  bool told = false;
  s->send_bulk({}, whole(body), [&](bool ok) { told = !ok; });
  EXPECT_TRUE(told);
}

TEST_P(bulk, is_answered_for_by_stop) {
  const auto b = begin("b");
  auto a = begin("a");
  join(*a, *b);
  const bytes body = noise(16u << 20, 10);
  for (int i = 0; i < 12; ++i) send(*a, *b, std::to_string(i), whole(body));
  a->wire().stop();
  EXPECT_EQ(done_ + failed_, 12u);
}

TEST_P(bulk, leaves_control_free) {
  auto echo = std::make_unique<node>(*network_, options("b"));
  node* const b = echo.get();
  b->also = [b](const node::event& e) {
    if (e.what == kind::frame) b->with_anyone()->send(e.content);
  };
  b->start();
  const auto a = begin("a");
  join(*a, *b);
  const bytes body = noise(64u << 20, 11);
  for (int i = 0; i < 4; ++i) send(*a, *b, std::to_string(i), whole(body));
  a->with(*b)->send(as_bytes("quick"));
  ASSERT_TRUE(until([&] { return a->count(kind::frame) == 1; }));
  EXPECT_LT(b->count(kind::arrived), 4u) << "the answer came only when all bulk was through";
  ASSERT_TRUE(until([&] { return b->count(kind::arrived) == 4; }));
}

TEST_P(bulk, with_a_head_that_is_too_long_is_a_wrong_call) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  EXPECT_THROW(a->with(*b)->send_bulk(noise(4097, 1), {}, [](bool) {}), error);
  a->with(*b)->send_bulk(noise(4096, 1), {}, [](bool) {});
  ASSERT_TRUE(until([&] { return b->count(kind::arrived) == 1; }));
  EXPECT_EQ(b->events(kind::arrived).at(0).content, noise(4096, 1));
}

INSTANTIATE_TEST_SUITE_P(wires, bulk, ::testing::ValuesIn(candidates()), [](const auto& p) { return p.param.name; });

}  // namespace wires
