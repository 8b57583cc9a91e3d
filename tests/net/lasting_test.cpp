// What this file is for: transfers that outlive connections: each goes once over a connection, and is told once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/lasting.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "net/codec.hpp"

namespace {

namespace net = troupe::net;

/// A connection of which each end is in the test's hands.
class connection final : public net::session {
 public:
  struct body {
    std::vector<std::byte> head;
    net::const_pieces from;
    std::function<void(bool)> done;
  };

  const net::identity& peer() const override { return peer_; }
  bool dialled() const override { return true; }
  bool send(std::span<const std::byte> f) override {
    frames.emplace_back(f.begin(), f.end());
    return true;
  }
  void send_bulk(std::span<const std::byte> head, net::const_pieces from, std::function<void(bool)> done) override {
    bodies.push_back({{head.begin(), head.end()}, std::move(from), std::move(done)});
  }
  std::size_t frame_max() const override { return 1000; }
  std::size_t unsent() const override { return 0; }
  std::chrono::steady_clock::time_point heard() const override { return {}; }
  std::uint64_t bytes_sent() const override { return 0; }
  std::uint64_t bytes_received() const override { return 0; }
  void close(std::exception_ptr) override {}

  void let_go(std::size_t which, bool sent) { std::exchange(bodies[which].done, nullptr)(sent); }

  std::vector<std::vector<std::byte>> frames;
  std::vector<body> bodies;

 private:
  net::identity peer_;
};

/// Where what arrives goes.
class receiver final : public net::lasting_events {
 public:
  void frame(std::span<const std::byte>) override {}
  net::pieces arriving(std::span<const std::byte>, std::uint64_t) override {
    ++asked;
    return {std::span(room).first(given)};
  }
  void arrived(std::span<const std::byte> head, bool whole) override {
    told.push_back(std::to_string(head.size()) + (whole ? " whole" : " broken"));
  }

  std::array<std::byte, 8> room{};
  std::size_t given = 8;
  int asked = 0;
  std::vector<std::string> told;
};

using pair = std::pair<std::shared_ptr<connection>, std::shared_ptr<net::lasting_session>>;
pair session() {
  auto c = std::make_shared<connection>();
  return {c, std::make_shared<net::lasting_session>(c)};
}
std::vector<std::byte> head_of(std::uint64_t number) {
  net::writer w;
  w.fixed(std::uint8_t{0x33});
  w.varint(number);
  w.raw("abc", 3);
  return w.take();
}
std::vector<std::byte> numbered(std::uint8_t kind, std::uint64_t number) {
  net::writer w;
  w.fixed(kind);
  w.varint(number);
  return w.take();
}
/// Frames that say that all of that transfer is there.
int confirmed(const connection& c, std::uint64_t number) {
  int n = 0;
  for (const auto& f : c.frames) n += f == numbered(net::lasting_first + 2, number);
  return n;
}

TEST(lasting, a_transfer_goes_once_over_each_connection_however_often_it_is_begun) {
  const auto [first, line] = session();
  receiver here;
  const std::array<std::byte, 8> body{};
  int done = 0;
  line->send_bulk({}, {body}, [&](bool whole) { done += whole; });
  ASSERT_EQ(first->bodies.size(), 1u);
  const auto next = std::make_shared<connection>();
  line->attach(next);
  EXPECT_TRUE(next->bodies.empty()) << "the peer may not know this connection yet";
  // A thread that hands a transfer over while the peer is saying this finds the line in step, and begins it too.
  line->take(*next, numbered(net::lasting_last, 1), here);
  line->take(*next, numbered(net::lasting_last, 1), here);
  ASSERT_EQ(next->bodies.size(), 1u);
  first->let_go(0, false);
  line->take(*next, numbered(net::lasting_first + 2, 1), here);
  EXPECT_EQ(done, 0) << "its memory is still read";
  next->let_go(0, true);
  EXPECT_EQ(done, 1);
}

TEST(lasting, a_frame_that_no_connection_takes_is_refused_and_does_not_hold_up_the_next) {
  const auto [c, line] = session();
  EXPECT_EQ(c->frame_max() - line->frame_max(), 21u) << "a kind and two numbers of ten bytes each stand before it";
  EXPECT_FALSE(line->send(std::vector<std::byte>(line->frame_max() + 1)));
  EXPECT_TRUE(c->frames.empty());
  EXPECT_EQ(line->unsent(), 0u) << "it is not kept";
  EXPECT_TRUE(line->send(std::vector<std::byte>(line->frame_max())));
  ASSERT_EQ(c->frames.size(), 1u);
  EXPECT_EQ(c->frames[0][1], std::byte{1}) << "the first that is sent";
}

TEST(lasting, who_confirms_a_transfer_and_says_more_has_not_confirmed_it) {
  const auto [c, line] = session();
  receiver here;
  const std::array<std::byte, 8> body{};
  std::vector<bool> done;
  line->send_bulk({}, {body}, [&](bool whole) { done.push_back(whole); });
  c->let_go(0, true);
  auto frame = numbered(net::lasting_first + 2, 1);
  frame.push_back(std::byte{0});
  EXPECT_THROW(line->take(*c, frame, here), troupe::error);
  line->end();
  EXPECT_EQ(done, std::vector<bool>{false}) << "whoever handed it over is told once";
}

TEST(lasting, what_is_begun_twice_at_once_is_told_when_nothing_is_written_any_more) {
  const auto [c, line] = session();
  receiver here;
  EXPECT_EQ(line->arriving(*c, head_of(1), 8, here).size(), 1u);
  EXPECT_TRUE(line->arriving(*c, head_of(1), 8, here).empty()) << "both would be written to one place";
  EXPECT_EQ(here.asked, 1);
  line->arrived(*c, head_of(1), true, here);  // the one or the other
  EXPECT_TRUE(here.told.empty());
  EXPECT_EQ(confirmed(*c, 1), 0);
  line->arrived(*c, head_of(1), true, here);
  EXPECT_EQ(here.told, std::vector<std::string>{"3 whole"});
  EXPECT_EQ(confirmed(*c, 1), 1);
}

TEST(lasting, what_there_was_no_room_for_is_confirmed_and_not_told) {
  const auto [c, line] = session();
  receiver here;
  here.given = 0;
  EXPECT_TRUE(line->arriving(*c, head_of(1), 8, here).empty());
  line->arrived(*c, head_of(1), true, here);
  here.given = 4;
  EXPECT_TRUE(line->arriving(*c, head_of(2), 8, here).empty()) << "room for a part is none";
  line->arrived(*c, head_of(2), true, here);
  EXPECT_TRUE(here.told.empty());
  EXPECT_EQ(confirmed(*c, 1), 1);
  EXPECT_EQ(confirmed(*c, 2), 1);
  here.given = 0;
  line->arriving(*c, head_of(3), 0, here);
  line->arrived(*c, head_of(3), true, here);
  EXPECT_EQ(here.told, std::vector<std::string>{"3 whole"}) << "nothing is all of nothing";
}

TEST(lasting, a_transfer_that_breaks_off_is_told_and_comes_again_over_the_next_connection) {
  const auto [first, line] = session();
  receiver here;
  line->arriving(*first, head_of(1), 8, here);
  line->arrived(*first, head_of(1), false, here);
  const auto next = std::make_shared<connection>();
  line->attach(next);
  EXPECT_EQ(line->arriving(*next, head_of(1), 8, here).size(), 1u);
  line->arrived(*next, head_of(1), true, here);
  EXPECT_EQ(here.told, (std::vector<std::string>{"3 broken", "3 whole"}));
  EXPECT_TRUE(line->arriving(*next, head_of(1), 8, here).empty()) << "it is there";
  line->arrived(*next, head_of(1), true, here);
  EXPECT_EQ(here.asked, 2);
  EXPECT_EQ(here.told.size(), 2u);
  EXPECT_EQ(confirmed(*next, 1), 3) << "once when it had come, and whenever it comes again";
}

}  // namespace
