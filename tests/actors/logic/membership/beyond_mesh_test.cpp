// What this file is for: more members than fit a mesh: which are watched, what is a link, what breaks without harm.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "actors/logic/membership/membership.hpp"

namespace {

using namespace std::chrono_literals;
using namespace troupe::detail;
using namespace troupe::logic;

node_id id_of(std::uint8_t n) {
  node_id id;
  id.bytes[0] = n;
  return id;
}
node_address address_of(std::uint8_t n) { return {"10.0.0." + std::to_string(n), 4711}; }
node_record record_of(std::uint8_t n, node_claim c = node_claim::live, std::uint32_t round = 0) {
  return {id_of(n), 1, round, c, {address_of(n)}};
}

membership_options options_of_few() {
  membership_options o;
  o.mesh_max = 8;
  o.watched = 3;
  return o;
}

/// Node 200, and 1 to 40 of which it has heard from node 1. Nodes that it dials answer, unless the test wants
/// otherwise.
class membership_beyond : public testing::Test {
 protected:
  membership_beyond() {
    up(1);
    node_news all{true, false, {}};
    for (std::uint8_t n = 2; n <= 40; ++n) all.records.push_back(record_of(n));
    say(1, all);
  }
  void up(std::uint8_t n, link_use use = link_use::none) {
    m.session_up(id_of(n), 1, {address_of(n)}, address_of(n), now);
    m.message(id_of(n), node_hello{record_of(n), false, {}, 41, 0, use}, now);
    sessions.insert(n);
    collect();
  }
  void say(std::uint8_t n, membership_message what) {
    m.message(id_of(n), what, now);
    collect();
  }
  void down(std::uint8_t n) {
    sessions.erase(n);
    m.session_down(id_of(n), now);
    collect();
  }
  void pass(std::chrono::milliseconds d) {
    const auto end = now + d;
    while (now < end) {
      now = std::min(end, std::max(now + 1ms, m.wake()));
      m.tick(now);
      collect();
      if (answers) answer();
    }
  }
  /// Has a node that was dialled connect, and one that was asked answer.
  void answer() {
    for (const auto& d : take<membership::dial>()) {
      if (d.instead && mute.contains(d.instead->bytes[0])) continue;
      dialled.push_back(d.to);
      up(static_cast<std::uint8_t>(std::stoi(d.to.host.substr(7))));
    }
    for (const auto& [to, b] : take_said<node_beat>())
      if (b.answer && sessions.contains(to.bytes[0]) && !mute.contains(to.bytes[0]))
        m.message(to, node_beat{false, 0, 0, {}, 0, ++time, b.sent}, now);
    collect();
  }
  void collect() {
    for (auto& a : m.take()) {
      if (const auto* c = std::get_if<membership::close>(&a)) sessions.erase(c->node.bytes[0]);
      done.push_back(std::move(a));
    }
  }
  template <class T>
  std::vector<T> take() {
    std::vector<T> all;
    for (const auto& a : done)
      if (const T* t = std::get_if<T>(&a)) all.push_back(*t);
    std::erase_if(done, [](const auto& a) { return std::holds_alternative<T>(a); });
    return all;
  }
  template <class M>
  std::vector<std::pair<node_id, M>> take_said() {
    std::vector<std::pair<node_id, M>> all;
    std::erase_if(done, [&](const auto& a) {
      const auto* s = std::get_if<membership::send>(&a);
      const M* x = s ? std::get_if<M>(&s->message) : nullptr;
      if (x) all.emplace_back(s->to, *x);
      return x != nullptr;
    });
    return all;
  }
  node_state state(std::uint8_t n) const { return m.state_of(id_of(n)); }
  /// The one that is watched since the shortest time.
  std::uint8_t watched() const { return static_cast<std::uint8_t>(std::stoi(dialled.back().host.substr(7))); }

  membership::time_point now{1h};
  membership m{id_of(200), 1, {address_of(200)}, options_of_few(), now};
  std::vector<membership::action> done;
  std::set<std::uint8_t> sessions, mute;
  std::vector<node_address> dialled;
  bool answers = true;
  std::uint64_t time = 0;
};

TEST_F(membership_beyond, who_is_heard_of_is_a_member_without_being_connected) {
  EXPECT_FALSE(m.is_mesh());
  EXPECT_EQ(m.live().size(), 41u);
  EXPECT_EQ(state(30), node_state::live);
  EXPECT_EQ(take<membership::came>().size(), 40u);
  EXPECT_TRUE(take<membership::joined>().empty()) << "it is no link";
}

TEST_F(membership_beyond, a_few_are_watched_and_each_second_one_of_them_is_let_rest_for_another) {
  pass(2s);
  EXPECT_EQ(sessions.size(), 1u + 3u);
  take_said<node_rest>();
  dialled.clear();
  pass(20s);
  EXPECT_EQ(sessions.size(), 1u + 3u);
  EXPECT_NEAR(static_cast<double>(dialled.size()), 20, 2);
  EXPECT_NEAR(static_cast<double>(take_said<node_rest>().size()), 20, 2);
  EXPECT_EQ(std::set(dialled.begin(), dialled.end()).size(), dialled.size()) << "each in its turn";
  pass(60s);
  EXPECT_EQ(std::set(dialled.begin(), dialled.end()).size(), 39u) << "all have theirs";
  EXPECT_TRUE(take<membership::went>().empty());
}

TEST_F(membership_beyond, one_that_is_watched_and_silent_is_gone_after_three_seconds) {
  pass(2s);
  const std::uint8_t n = watched();
  mute.insert(n);
  const auto since = now;
  while (state(n) != node_state::gone && now < since + 10s) pass(50ms);
  EXPECT_GE(now - since, 2500ms);
  EXPECT_LE(now - since, 3300ms);
  EXPECT_EQ(take<membership::went>().at(0).why, node_end::silent);
}

TEST_F(membership_beyond, unless_others_hear_it_then_the_path_to_it_is_left_alone) {
  pass(2s);
  const std::uint8_t n = watched();
  mute.insert(n);
  for (int i = 0; i < 40; ++i) {
    pass(100ms);
    for (const auto& [to, p] : take_said<node_probe>())
      if (p.target == id_of(n)) say(to.bytes[0], node_alive{p.target});
  }
  EXPECT_NE(state(n), node_state::gone);
  EXPECT_FALSE(sessions.contains(n));
  for (const auto& [to, r] : take_said<node_rest>()) EXPECT_NE(to, id_of(n)) << "it would not hear that";
}

TEST_F(membership_beyond, a_connection_that_the_peer_lets_rest_is_no_reason_to_look_after_it) {
  answers = false;
  pass(2s);
  take<membership::dial>();
  up(30);
  say(30, node_rest{});
  down(30);
  pass(900ms);
  for (const auto& d : take<membership::dial>()) EXPECT_NE(d.to, address_of(30));
  EXPECT_EQ(state(30), node_state::live);
}

TEST_F(membership_beyond, one_that_breaks_is_dialled_at_once_and_if_nobody_listens_there_the_process_has_ended) {
  answers = false;
  up(30);
  pass(1500ms);
  take<membership::dial>();
  down(30);
  pass(1ms);
  const auto dials = take<membership::dial>();
  ASSERT_TRUE(std::any_of(dials.begin(), dials.end(), [](const auto& d) { return d.to == address_of(30); }));
  m.refused(address_of(30), true, now);
  collect();
  EXPECT_EQ(state(30), node_state::gone);
  EXPECT_EQ(take<membership::went>().at(0).why, node_end::ended);
  bool told = false;
  for (const auto& [to, n] : take_said<node_news>()) told = told || n.records.at(0) == record_of(30, node_claim::gone);
  EXPECT_TRUE(told) << "others hear of it before the next heartbeat";
}

TEST_F(membership_beyond, a_dial_that_is_refused_says_nothing_of_one_that_was_never_reached) {
  answers = false;
  pass(50ms);
  const auto dials = take<membership::dial>();
  ASSERT_FALSE(dials.empty());
  m.refused(dials[0].to, true, now);
  collect();
  EXPECT_TRUE(take<membership::went>().empty()) << "its address may be a wrong one";
}

TEST_F(membership_beyond, who_is_asked_for_one_that_is_not_connected_dials_it_and_answers_once_it_has_heard) {
  pass(2s);
  answers = false;
  take<membership::dial>();
  std::uint8_t target = 2;
  while (sessions.contains(target)) ++target;
  say(1, node_probe{id_of(target)});
  pass(1ms);
  const auto dials = take<membership::dial>();
  ASSERT_TRUE(std::any_of(dials.begin(), dials.end(), [&](const auto& d) { return d.to == address_of(target); }));
  EXPECT_TRUE(take_said<node_alive>().empty());
  up(target);
  const auto alive = take_said<node_alive>();
  ASSERT_EQ(alive.size(), 1u);
  EXPECT_EQ(alive[0].first, id_of(1));
}

TEST_F(membership_beyond, what_others_say_is_gone_is_gone_and_passed_on_at_once) {
  pass(2s);
  take_said<node_news>();
  say(1, node_news{false, false, {record_of(30, node_claim::gone)}});
  EXPECT_EQ(state(30), node_state::gone);
  std::set<node_id> told;
  for (const auto& [to, n] : take_said<node_news>()) told.insert(to);
  EXPECT_EQ(told.size(), sessions.size());
}

TEST_F(membership_beyond, a_link_is_one_once_both_have_said_so) {
  up(30);
  m.work_with(id_of(30), now);
  collect();
  const auto said = take_said<node_link>();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].second.use, link_use::work);
  EXPECT_TRUE(take<membership::joined>().empty());
  say(30, node_link{});
  EXPECT_EQ(take<membership::joined>().at(0).node, id_of(30));
  EXPECT_TRUE(take_said<node_link>().empty()) << "it has said so";
}

TEST_F(membership_beyond, whoever_asks_for_a_link_gets_it_and_is_watched_from_then_on) {
  up(30);
  say(30, node_link{link_use::work});
  EXPECT_EQ(take_said<node_link>().size(), 1u);
  EXPECT_EQ(take<membership::joined>().size(), 1u);
  mute.insert(30);
  pass(1200ms);
  EXPECT_EQ(take<membership::suspected>().size(), 1u);
  pass(2200ms);
  EXPECT_EQ(take<membership::gone>().at(0).why, node_end::silent);
}

TEST_F(membership_beyond, who_comes_with_a_link_is_linked_at_once) {
  up(30, link_use::work);
  EXPECT_EQ(take<membership::joined>().size(), 1u);
}

TEST_F(membership_beyond, sums_that_differ_are_answered_with_what_they_stand_for) {
  record_sums theirs;
  for (std::uint8_t n = 1; n <= 40; ++n)
    if (n != 17) theirs.change(id_of(n), record_sums::sum_of(record_of(n)));
  theirs.change(id_of(200), record_sums::sum_of(m.self()));
  take_said<node_sums>();
  say(1, node_sums{true, theirs.all()});
  const auto news = take_said<node_news>();
  ASSERT_EQ(news.size(), 1u);
  EXPECT_LT(news[0].second.records.size(), 8u) << "not everything";
  for (const node_record& r : news[0].second.records)
    EXPECT_EQ(record_sums::part_of(r.node), record_sums::part_of(id_of(17)));
  EXPECT_TRUE(std::any_of(news[0].second.records.begin(), news[0].second.records.end(),
                          [](const node_record& r) { return r.node == id_of(17); }));
  ASSERT_EQ(take_said<node_sums>().size(), 1u);
  theirs.change(id_of(17), record_sums::sum_of(record_of(17)));
  say(1, node_sums{false, theirs.all()});
  EXPECT_TRUE(take_said<node_news>().empty());
  say(1, node_sums{true, {1, 2, 3}});
  EXPECT_TRUE(take_said<node_news>().empty()) << "of another kind";
}

TEST_F(membership_beyond, who_knows_few_asks_one_of_those_that_know_many) {
  membership x(id_of(201), 1, {address_of(201)}, options_of_few(), now);
  std::size_t asked = 0;
  for (const std::uint8_t n : {1, 2, 3}) {
    x.session_up(id_of(n), 1, {address_of(n)}, address_of(n), now);
    x.message(id_of(n), node_hello{record_of(n), false, {}, 41, 7, link_use::none}, now);
    for (const auto& a : x.take())
      if (const auto* s = std::get_if<membership::send>(&a)) asked += std::holds_alternative<node_sums>(s->message);
  }
  EXPECT_EQ(asked, 1u);
  take_said<node_news>();
  up(50);
  EXPECT_TRUE(take_said<node_news>().empty()) << "nobody is told unasked";
}

TEST_F(membership_beyond, so_few_that_they_fit_a_mesh_again_are_all_dialled_and_linked) {
  pass(2s);
  node_news gone;
  for (std::uint8_t n = 7; n <= 40; ++n)
    if (!sessions.contains(n)) gone.records.push_back(record_of(n, node_claim::gone));
  say(1, gone);
  for (const std::uint8_t n : std::set(sessions))
    if (n >= 7) say(n, node_news{false, false, {record_of(n, node_claim::left, 1)}});
  pass(2s);
  EXPECT_TRUE(m.is_mesh());
  for (std::uint8_t n = 1; n <= 6; ++n) {
    if (!sessions.contains(n))
      up(n, link_use::idle);
    else
      say(n, node_link{});
    EXPECT_EQ(state(n), node_state::live) << int{n};
  }
  EXPECT_EQ(take<membership::joined>().size(), 6u);
  EXPECT_EQ(m.live().size(), 7u);
}

}  // namespace
