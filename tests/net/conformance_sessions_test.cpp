// What this file is for: the suite for wires: how sessions begin, how many there are, how they end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "conformance.hpp"

namespace wires {

using sessions = conformance;
using kind = node::kind;

TEST_P(sessions, are_up_on_both_sides_with_who_is_there) {
  auto o = options("a");
  o.self.incarnation = 7;
  const auto a = begin(o), b = begin("b");
  join(*a, *b);
  EXPECT_EQ(b->with(*a)->peer().name, "a");
  EXPECT_EQ(b->with(*a)->peer().incarnation, 7u);
  EXPECT_EQ(b->with(*a)->peer().listens_on, std::vector{a->address()});
  EXPECT_EQ(a->with(*b)->peer().name, "b");
  EXPECT_TRUE(a->with(*b)->dialled());
  EXPECT_EQ(a->with(*b)->dialled_at(), b->address());
  EXPECT_FALSE(b->with(*a)->dialled());
}

TEST_P(sessions, do_not_come_where_nobody_listens) {
  const auto a = begin("a");
  a->wire().dial(network_->nowhere());
  ASSERT_TRUE(until([&] { return a->count(kind::refused) == 1; }));
  const auto e = a->events(kind::refused).at(0);
  EXPECT_EQ(code_of(e.why), errc::unreachable) << text_of(e.why);
  EXPECT_EQ(reason_of(e.why), dial_error::reason::nobody_listens) << text_of(e.why);
  EXPECT_EQ(e.where, network_->nowhere());
  try {
    std::rethrow_exception(e.why);
  } catch (const dial_error& why) {
    EXPECT_EQ(why.why(), dial_error::reason::nobody_listens) << "membership takes a process for dead because of it";
  } catch (...) {
    ADD_FAILURE() << "it does not say which it is: " << text_of(e.why);
  }
}

TEST_P(sessions, do_not_come_with_oneself) {
  const auto a = begin("a");
  a->wire().dial(a->address());
  ASSERT_TRUE(until([&] { return a->count(kind::refused) == 1; }));
  const auto why = a->events(kind::refused).at(0).why;
  EXPECT_EQ(code_of(why), errc::refused);
  EXPECT_EQ(reason_of(why), dial_error::reason::self) << text_of(why);
  EXPECT_EQ(a->count(kind::up), 0u);
}

TEST_P(sessions, do_not_come_with_another_cluster) {
  auto other = options("b");
  other.self.cluster = "elsewhere";
  const auto a = begin("a"), b = begin(other);
  a->wire().dial(b->address());
  ASSERT_TRUE(until([&] { return a->count(kind::refused) == 1; }));
  const auto why = a->events(kind::refused).at(0).why;
  EXPECT_EQ(code_of(why), errc::refused);
  EXPECT_NE(text_of(why).find("elsewhere"), std::string::npos) << text_of(why);
  EXPECT_EQ(b->count(kind::up), 0u);
}

TEST_P(sessions, are_one_however_often_a_peer_is_dialled) {
  const auto a = begin("a"), b = begin("b");
  for (int i = 0; i < 5; ++i) a->wire().dial(b->address());
  ASSERT_TRUE(until([&] { return a->with(*b) && b->with(*a); }));
  // Events that are told after a last exchange would have been told before it.
  for (int i = 0; i < 3; ++i) {
    a->wire().dial(b->address());
    a->with(*b)->send(as_bytes("there"));
    ASSERT_TRUE(until([&] { return b->count(kind::frame) == static_cast<std::size_t>(i + 1); }));
  }
  EXPECT_EQ(a->count(kind::up), 1u);
  EXPECT_EQ(b->count(kind::up), 1u);
  EXPECT_EQ(a->count(kind::down) + b->count(kind::down), 0u);
}

TEST_P(sessions, are_one_when_two_processes_dial_each_other) {
  for (int round = 0; round < 20; ++round) {
    const auto a = begin("a"), b = begin("b");
    a->wire().dial(b->address());
    b->wire().dial(a->address());
    ASSERT_TRUE(until([&] { return a->with(*b) && b->with(*a); }));
    const auto on_a = a->with(*b), on_b = b->with(*a);
    EXPECT_NE(on_a->dialled(), on_b->dialled()) << "they have kept different ones";
    // The session works in both directions, and stays.
    ASSERT_TRUE(on_a->send(as_bytes("from a")));
    ASSERT_TRUE(on_b->send(as_bytes("from b")));
    ASSERT_TRUE(until([&] { return a->count(kind::frame) == 1 && b->count(kind::frame) == 1; }));
    EXPECT_EQ(a->count(kind::up), 1u);
    EXPECT_EQ(b->count(kind::up), 1u);
    EXPECT_EQ(a->count(kind::down) + b->count(kind::down) + a->count(kind::refused) + b->count(kind::refused), 0u);
  }
}

TEST_P(sessions, end_on_both_sides_when_one_closes) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  const auto s = a->with(*b);
  s->close(std::make_exception_ptr(error(errc::cancelled, "enough")));
  ASSERT_TRUE(until([&] { return a->count(kind::down) == 1 && b->count(kind::down) == 1; }));
  EXPECT_EQ(text_of(a->events(kind::down).at(0).why), "enough");
  EXPECT_EQ(code_of(b->events(kind::down).at(0).why), errc::node_lost);
  EXPECT_FALSE(s->send(as_bytes("too late")));
}

TEST_P(sessions, deliver_what_was_said_before_the_end) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  ASSERT_TRUE(a->with(*b)->send(as_bytes("farewell")));
  a->with(*b)->close(nullptr);
  ASSERT_TRUE(until([&] { return b->count(kind::down) == 1; }));
  ASSERT_EQ(b->count(kind::frame), 1u);
  EXPECT_EQ(b->events().back().what, kind::down);
}

TEST_P(sessions, end_when_the_peer_stops_and_come_again) {
  const auto b = begin("b");
  {
    const auto a = begin("a");
    join(*a, *b);
    a->wire().stop();
    EXPECT_EQ(a->count(kind::down), 1u) << "its own side is told before stop returns";
    EXPECT_EQ(code_of(a->events(kind::down).at(0).why), errc::runtime_stopped);
  }
  ASSERT_TRUE(until([&] { return b->count(kind::down) == 1; }));
  const auto c = begin("c");
  join(*c, *b);
  EXPECT_EQ(b->count(kind::up), 2u);
}

TEST_P(sessions, come_again_after_an_end_whoever_dials) {
  const auto a = begin("a"), b = begin("b");
  node* from = a.get();
  node* to = b.get();
  for (int i = 0; i < 6; ++i) {
    join(*from, *to);
    (i % 3 == 0 ? from : to)->with(i % 3 == 0 ? *to : *from)->close(nullptr);
    // Only one side has to know before it dials again.
    ASSERT_TRUE(until([&] { return from->with(*to) == nullptr; }));
    if (i % 2 == 0) std::swap(from, to);
    ASSERT_TRUE(until([&] { return from->with(*to) == nullptr; }));
  }
  EXPECT_EQ(a->count(kind::refused) + b->count(kind::refused), 0u);
}

TEST_P(sessions, of_a_process_that_started_again_replace_the_older) {
  const auto b = begin("b");
  auto o = options("a");
  const auto first = begin(o);
  join(*first, *b);
  const auto old = b->with(*first);
  o.self.incarnation = 2;
  const auto second = begin(o);
  second->wire().dial(b->address());
  ASSERT_TRUE(until([&] { return b->count(kind::up) == 2; }));
  const auto told = b->events();
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[1].what, kind::down) << "the older is down before the newer is up";
  EXPECT_EQ(told[1].of, old.get());
  EXPECT_EQ(b->with(*second)->peer().incarnation, 2u);
  // The one that was replaced is not let in again.
  ASSERT_TRUE(until([&] { return first->count(kind::down) == 1; }));
  first->wire().dial(b->address());
  ASSERT_TRUE(until([&] { return first->count(kind::refused) == 1; }));
  EXPECT_EQ(code_of(first->events(kind::refused).at(0).why), errc::refused);
}

TEST_P(sessions, that_say_nothing_are_replaced_by_what_is_dialled_instead) {
  const auto a = begin("a"), b = begin("b");
  for (const auto& [from, to] : {std::pair(a.get(), b.get()), std::pair(b.get(), a.get())}) {
    const std::size_t before = a->count(kind::up);
    if (before == 0) join(*from, *to);
    const std::size_t ups = a->count(kind::up) + 1;
    const auto old = from->with(*to);
    // A session that says something meanwhile, be it only of its fabric, is kept: then it is dialled again.
    auto heard = old->heard();
    const auto dial = [&] { from->wire().dial(to->address(), old); };
    dial();
    ASSERT_TRUE(until([&] {
      if (const auto now = old->heard(); std::exchange(heard, now) != now) dial();
      return a->count(kind::up) == ups && b->count(kind::up) == ups;
    }));
    ASSERT_TRUE(until([&] { return a->count(kind::down) == ups - 1 && b->count(kind::down) == ups - 1; }));
    for (const node* n : {from, to}) {
      const auto told = n->events();
      EXPECT_EQ(told.back().what, kind::up) << "the older is down before the newer is up";
      EXPECT_EQ(told[told.size() - 2].what, kind::down);
    }
    EXPECT_NE(from->with(*to), old);
    // That one has been replaced: nothing is to be replaced any more.
    from->wire().dial(to->address(), old);
    const auto fresh = from->with(*to);
    ASSERT_TRUE(fresh->send(as_bytes("over the new one")));
    ASSERT_TRUE(until([&] { return !to->frames().empty(); }));
    EXPECT_EQ(to->frames().at(0), as_bytes("over the new one"));
    EXPECT_EQ(from->with(*to), fresh);
  }
}

TEST_P(sessions, are_told_on_one_thread_and_none_after_stop) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  const auto s = b->with(*a);
  for (int i = 0; i < 100; ++i) s->send(as_bytes("more"));
  ASSERT_TRUE(until([&] { return a->count(kind::frame) >= 1; }));
  a->wire().stop();
  const auto told = a->events();
  ASSERT_TRUE(until([&] { return b->count(kind::down) == 1; }));
  EXPECT_EQ(a->events().size(), told.size());
  for (const auto& e : told) EXPECT_EQ(e.thread, told[0].thread);
  a->wire().stop();
}

TEST_P(sessions, know_when_the_peer_was_heard_and_count_bytes) {
  const auto a = begin("a"), b = begin("b");
  join(*a, *b);
  const auto s = b->with(*a);
  const auto before = s->heard();
  const auto received = s->bytes_received();
  const auto sent = a->with(*b)->bytes_sent();
  ASSERT_TRUE(until([&] { return b->wire().now() > before; }));
  a->with(*b)->send(noise(1000, 1));
  ASSERT_TRUE(until([&] { return b->count(kind::frame) == 1; }));
  EXPECT_GT(s->heard(), before);
  EXPECT_GE(s->bytes_received() - received, 1000u);
  EXPECT_GE(a->with(*b)->bytes_sent() - sent, 1000u);
}

TEST_P(sessions, let_calls_run_at_their_time_in_order) {
  const auto a = begin("a");
  std::mutex lock;
  std::vector<int> order;
  const auto base = a->wire().now() + std::chrono::milliseconds(20);
  bool early = false;
  const auto note = [&](int i, transport::time_point when) {
    a->wire().at(when, [&, i, when] {
      const std::lock_guard hold(lock);
      order.push_back(i);
      early = early || a->wire().now() < when;
    });
  };
  note(3, base + std::chrono::milliseconds(5));
  note(1, base);
  note(2, base);
  note(0, base - std::chrono::milliseconds(20));
  ASSERT_TRUE(until([&] {
    const std::lock_guard hold(lock);
    return order.size() == 4;
  }));
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
  EXPECT_FALSE(early);
}

INSTANTIATE_TEST_SUITE_P(wires, sessions, ::testing::ValuesIn(candidates()),
                         [](const auto& p) { return p.param.name; });

}  // namespace wires
