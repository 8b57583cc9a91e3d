// What this file is for: the suite for wires: frames on control.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <cstring>
#include <future>

#include "conformance.hpp"

namespace wires {

using frames = conformance;
using kind = node::kind;

TEST_P(frames, arrive_in_order_whatever_their_sizes) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  std::vector<bytes> said;
  for (unsigned i = 0; i < 300; ++i) said.push_back(noise((i * i * 37) % (i % 50 == 7 ? 900'000 : 3'000), i));
  said.push_back({});
  for (const auto& f : said) ASSERT_TRUE(a->with(*b)->send(f));
  ASSERT_TRUE(until([&] { return b->count(kind::frame) == said.size(); }));
  EXPECT_EQ(b->frames(), said);
}

TEST_P(frames, go_both_ways_as_question_and_answer) {
  auto a = begin("a");
  auto answering = std::make_unique<node>(*network_, options("b"));
  node* const b = answering.get();
  b->also = [b](const node::event& e) {
    if (e.what == kind::frame) b->with_anyone()->send(e.content);
  };
  b->start();
  join(*a, *b);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(a->with(*b)->send(as_bytes("question " + std::to_string(i))));
    ASSERT_TRUE(until([&] { return a->count(kind::frame) == static_cast<std::size_t>(i + 1); }));
  }
  EXPECT_EQ(as_text(a->frames().back()), "question 199");
}

TEST_P(frames, of_many_threads_arrive_whole_and_in_the_order_of_each) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  constexpr int threads = 4, each = 500;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      const auto s = a->with(*b);
      for (int i = 0; i < each; ++i) {
        bytes f = noise(16 + static_cast<std::size_t>(i % 7) * 1000, static_cast<unsigned>(t * each + i));
        const int mark[2] = {t, i};
        std::memcpy(f.data(), mark, sizeof mark);
        EXPECT_TRUE(s->send(f));
      }
    });
  }
  for (auto& t : all) t.join();
  ASSERT_TRUE(until([&] { return b->count(kind::frame) == threads * each; }));
  int next[threads] = {};
  for (const auto& f : b->frames()) {
    int mark[2];
    std::memcpy(mark, f.data(), sizeof mark);
    ASSERT_EQ(mark[1], next[mark[0]]++);
    bytes expected = noise(f.size(), static_cast<unsigned>(mark[0] * each + mark[1]));
    ASSERT_EQ(std::memcmp(f.data() + 8, expected.data() + 8, f.size() - 8), 0);
  }
}

TEST_P(frames, can_be_sent_by_others_while_one_is_told) {
  const auto a = begin("a");
  const auto b = std::make_unique<node>(*network_, options("b"));
  std::promise<bool> was_sent;
  b->also = [&](const node::event& e) {
    if (e.what != kind::frame) return;
    const auto other = std::async(std::launch::async, [s = b->with_anyone()] { return s->send(as_bytes("answer")); });
    was_sent.set_value(other.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  };
  b->start();
  join(*a, *b);
  ASSERT_TRUE(a->with(*b)->send(as_bytes("question")));
  ASSERT_TRUE(until([&] { return a->count(kind::frame) == 1; }));
  EXPECT_TRUE(was_sent.get_future().get())
      << "whoever sends with a lock that is taken where frames are told would have waited for ever";
}

TEST_P(frames, larger_than_allowed_are_not_sent) {
  auto small = options("a");
  small.frame_max = 1000;
  const auto a = begin(small), b = begin("b");
  join(*a, *b);
  EXPECT_FALSE(a->with(*b)->send(noise(1001, 1)));
  EXPECT_FALSE(b->with(*a)->send(noise(1001, 1))) << "more than the other side takes";
  EXPECT_TRUE(a->with(*b)->send(noise(1000, 2)));
  EXPECT_TRUE(b->with(*a)->send(noise(1000, 2)));
  ASSERT_TRUE(until([&] { return b->count(kind::frame) == 1 && a->count(kind::frame) == 1; }));
  EXPECT_EQ(b->frames().at(0), noise(1000, 2));
}

TEST_P(frames, as_large_as_allowed_arrive) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  const bytes large = noise(16u << 20, 5);
  ASSERT_TRUE(a->with(*b)->send(large));
  ASSERT_TRUE(a->with(*b)->send(as_bytes("after")));
  ASSERT_TRUE(until([&] { return b->count(kind::frame) == 2; }));
  EXPECT_TRUE(b->frames().at(0) == large);
  EXPECT_EQ(a->with(*b)->unsent(), 0u);
}

TEST_P(frames, pile_up_for_a_peer_that_does_not_read_until_the_session_ends) {
  if (GetParam().one_thread) GTEST_SKIP() << "what is told blocks here; loopback_test.cpp has the same with a cut path";
  auto o = options("a");
  o.unsent_max = 4u << 20;
  const auto a = begin(o);
  std::mutex gate;
  std::unique_lock shut(gate);
  auto slow = std::make_unique<node>(*network_, options("b"));
  slow->also = [&](const node::event& e) {
    if (e.what == kind::frame) const std::lock_guard wait(gate);
  };
  slow->start();
  join(*a, *slow);
  const auto s = a->with(*slow);
  const bytes f = noise(1u << 20, 3);
  std::size_t sent = 0;
  bool has_grown = false;
  while (sent < GetParam().swallows_max + (16u << 20) && s->send(f)) {
    sent += f.size();
    has_grown = has_grown || s->unsent() > 0;
    EXPECT_LE(s->unsent(), o.unsent_max);
  }
  EXPECT_TRUE(has_grown);
  ASSERT_TRUE(until([&] { return a->count(kind::down) == 1; }));
  const auto why = a->events(kind::down).at(0).why;
  EXPECT_EQ(code_of(why), errc::node_lost);
  EXPECT_NE(text_of(why).find("unsent_max"), std::string::npos) << text_of(why);
  EXPECT_FALSE(s->send(as_bytes("more")));
  shut.unlock();
  ASSERT_TRUE(until([&] { return slow->count(kind::down) == 1; }));
  slow->wire().stop();
}

TEST_P(frames, may_be_sent_and_sessions_closed_from_what_is_told) {
  auto eager = std::make_unique<node>(*network_, options("b"));
  node* const b = eager.get();
  b->also = [b](const node::event& e) {
    if (e.what == kind::up) b->with_anyone()->send(as_bytes("hello"));
    if (e.what == kind::frame) b->with_anyone()->close(nullptr);
  };
  b->start();
  const auto a = begin("a");
  a->wire().dial(b->address());
  ASSERT_TRUE(until([&] { return a->count(kind::frame) == 1; }));
  const auto s = a->with(*b);
  for (int i = 0; i < 10; ++i) s->send(as_bytes("bye"));
  ASSERT_TRUE(until([&] { return a->count(kind::down) == 1 && b->count(kind::down) == 1; }));
  EXPECT_EQ(b->count(kind::frame), 1u) << "nothing is told of a session that this side has closed";
}

INSTANTIATE_TEST_SUITE_P(wires, frames, ::testing::ValuesIn(candidates()), [](const auto& p) { return p.param.name; });

}  // namespace wires
