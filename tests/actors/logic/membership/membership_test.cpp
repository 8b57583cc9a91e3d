// What this file is for: members: each change of state, and which nodes may bring it about.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "suite.hpp"

namespace {

using namespace membership_suite;

TEST_F(membership_of, a_candidate_is_dialled_at_once_and_then_after_longer_and_longer_waits) {
  m.candidate(address_of(1), now);
  std::vector<membership::time_point> dials;
  while (now < membership::time_point(1h) + 60s) {
    pass(10ms);
    for (const auto& d : taken<membership::dial>()) {
      dials.push_back(now);
      m.refused(d.to, true, now);
    }
  }
  ASSERT_GE(dials.size(), 8u);
  EXPECT_LT(dials.size(), 16u);
  EXPECT_LT(dials[1] - dials[0], 140ms);
  EXPECT_GT(dials.back() - dials[dials.size() - 2], 7s);
  EXPECT_LT(dials.back() - dials[dials.size() - 2], 13s);
}

TEST_F(membership_of, who_connects_again_before_he_has_said_anything_is_heard) {
  up(1);
  up(1);
  hello(1);
  EXPECT_EQ(state(1), node_state::live);
  EXPECT_EQ(m.members().size(), 2u);
}

TEST_F(membership_of, its_own_address_is_not_dialled) {
  m.candidate(address_of(me), now);
  pass(1s);
  EXPECT_TRUE(taken<membership::dial>().empty());
}

TEST_F(membership_of, a_peer_is_joining_until_it_has_greeted_and_live_from_then) {
  up(1);
  EXPECT_EQ(state(1), node_state::joining);
  ASSERT_EQ(said<node_hello>().size(), 1u);
  EXPECT_FALSE(said<node_hello>()[0].second.knows_you);
  EXPECT_TRUE(taken<membership::joined>().empty());
  hello(1);
  EXPECT_EQ(state(1), node_state::live);
  EXPECT_EQ(taken<membership::joined>().size(), 1u);
}

TEST_F(membership_of, a_peer_that_does_not_greet_is_not_kept) {
  up(1);
  pass(4s, {1});
  EXPECT_EQ(taken<membership::close>().size(), 1u);
  EXPECT_TRUE(taken<membership::gone>().empty()) << "it never was a member";
}

TEST_F(membership_of, a_member_whose_session_ends_is_suspect_at_once_and_dialled) {
  join(1);
  down(1);
  EXPECT_EQ(state(1), node_state::suspect);
  pass(1ms);
  ASSERT_EQ(taken<membership::dial>().size(), 1u);
}

TEST_F(membership_of, and_is_gone_as_soon_as_nobody_listens_there) {
  join(1);
  down(1);
  m.refused(address_of(1), true, now);
  collect();
  EXPECT_EQ(state(1), node_state::gone);
  EXPECT_EQ(taken<membership::gone>().at(0).why, node_end::ended);
}

TEST_F(membership_of, but_not_because_nobody_answers) {
  join(1);
  down(1);
  m.refused(address_of(1), false, now);
  pass(2s);
  EXPECT_EQ(state(1), node_state::suspect);
  pass(1300ms);
  EXPECT_EQ(state(1), node_state::gone);
}

TEST_F(membership_of, a_member_that_comes_back_in_time_goes_on) {
  join(1);
  down(1);
  done.clear();
  up(1);
  EXPECT_TRUE(said<node_hello>().at(0).second.knows_you);
  EXPECT_EQ(state(1), node_state::suspect);
  hello(1, true);
  EXPECT_EQ(state(1), node_state::live);
  EXPECT_EQ(taken<membership::resumed>().size(), 1u);
  EXPECT_EQ(taken<membership::refuted>().size(), 1u);
  EXPECT_TRUE(taken<membership::gone>().empty());
}

TEST_F(membership_of, a_member_that_has_given_this_node_up_is_lost_and_joins_as_new) {
  join(1);
  down(1);
  done.clear();
  up(1);
  hello(1, false, record_of(me, node_claim::gone));
  EXPECT_EQ(m.self().round, 1u) << "it refutes";
  EXPECT_EQ(taken<membership::gone>().at(0).why, node_end::forgot_us);
  EXPECT_EQ(taken<membership::joined>().size(), 1u);
  EXPECT_EQ(state(1), node_state::live);
}

TEST_F(membership_of, a_member_that_this_node_gives_up_is_lost_at_once_and_joins_as_new_over_another_session) {
  join(1);
  done.clear();
  m.give_up(id_of(1), now);
  collect();
  EXPECT_EQ(taken<membership::gone>().at(0).why, node_end::given_up);
  EXPECT_EQ(taken<membership::close>().at(0).node, id_of(1));
  down(1);
  EXPECT_TRUE(taken<membership::gone>().empty());
  pass(100ms);
  EXPECT_EQ(taken<membership::dial>().size(), 1u);
  done.clear();
  up(1);
  EXPECT_FALSE(said<node_hello>().at(0).second.knows_you);
  hello(1, true);  // which has not noticed yet
  EXPECT_EQ(taken<membership::joined>().size(), 1u);
  EXPECT_TRUE(taken<membership::resumed>().empty());
  EXPECT_EQ(state(1), node_state::live);
  m.give_up(id_of(2), now);  // a node that nobody knows
  collect();
  EXPECT_TRUE(taken<membership::gone>().empty());
}

TEST_F(membership_of, the_refutation_leaves_before_the_peer_has_joined) {
  up(1);
  done.clear();
  hello(1, false, record_of(me, node_claim::gone, 4));
  ASSERT_GE(done.size(), 2u);
  const auto* first = std::get_if<membership::send>(&done[0]);
  ASSERT_TRUE(first && std::holds_alternative<node_news>(first->message));
  EXPECT_EQ(std::get<node_news>(first->message).records.at(0).round, 5u);
}

TEST_F(membership_of, who_was_gone_joins_only_once_it_has_refuted) {
  join(1);
  down(1);
  m.refused(address_of(1), true, now);
  collect();
  done.clear();
  up(1);
  ASSERT_TRUE(said<node_hello>().at(0).second.of_you);
  EXPECT_EQ(said<node_hello>()[0].second.of_you->claim, node_claim::gone);
  hello(1);
  EXPECT_TRUE(taken<membership::joined>().empty());
  news(1, record_of(1, node_claim::live, 1));
  EXPECT_EQ(taken<membership::joined>().size(), 1u);
  EXPECT_EQ(state(1), node_state::live);
}

TEST_F(membership_of, a_larger_incarnation_is_another_process_and_the_old_one_is_gone_at_once) {
  join(1);
  down(1);
  done.clear();
  up(1, 2);
  EXPECT_EQ(taken<membership::gone>().at(0).why, node_end::replaced);
  hello(1, false, {}, 0, 2);
  EXPECT_EQ(taken<membership::joined>().size(), 1u);
  EXPECT_EQ(m.record_of(id_of(1))->incarnation, 2u);
}

TEST_F(membership_of, a_smaller_incarnation_is_not_let_in) {
  up(1, 3);
  hello(1, false, {}, 0, 3);
  down(1);
  done.clear();
  up(1, 2);
  EXPECT_EQ(taken<membership::close>().size(), 1u);
}

TEST_F(membership_of, another_process_at_the_address_of_a_suspect_replaces_it) {
  join(1);
  down(1);
  m.session_up(id_of(9), 1, {address_of(1)}, {}, now);
  collect();
  EXPECT_EQ(state(1), node_state::gone);
  EXPECT_EQ(taken<membership::gone>().at(0).why, node_end::replaced);
}

TEST_F(membership_of, who_says_goodbye_is_gone_and_not_dialled_again) {
  join(1);
  news(1, record_of(1, node_claim::left, 1));
  EXPECT_EQ(taken<membership::gone>().at(0).why, node_end::left);
  down(1);
  done.clear();
  pass(60s);
  EXPECT_TRUE(taken<membership::dial>().empty());
}

TEST_F(membership_of, who_is_heard_is_not_given_up_because_of_others_but_told_of_it) {
  join(1);
  join(2);
  done.clear();
  news(2, record_of(1, node_claim::gone));
  EXPECT_EQ(state(1), node_state::live);
  const auto told = said<node_news>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].first, id_of(1));
  EXPECT_EQ(told[0].second.records.at(0).claim, node_claim::gone);
}

TEST_F(membership_of, who_is_not_heard_is_given_up_when_others_say_so) {
  join(1);
  join(2);
  down(1);
  news(2, record_of(1, node_claim::gone));
  EXPECT_EQ(taken<membership::gone>().at(0).why, node_end::said);
}

TEST_F(membership_of, what_is_said_of_this_node_is_refuted_with_a_larger_round) {
  join(1);
  done.clear();
  news(1, record_of(me, node_claim::suspect, 7));
  EXPECT_EQ(m.self().round, 8u);
  ASSERT_EQ(said<node_news>().size(), 1u);
  EXPECT_EQ(said<node_news>()[0].second.records.at(0), m.self());
  news(1, record_of(me, node_claim::gone, 7));
  EXPECT_EQ(m.self().round, 8u) << "that has been refuted already";
}

TEST_F(membership_of, a_node_that_others_tell_of_is_dialled_and_a_member_that_is_not_connected) {
  join(1);
  news(1, record_of(7));
  EXPECT_EQ(state(7), node_state::candidate);
  EXPECT_EQ(m.members(), (std::vector{id_of(1), id_of(me), id_of(7)}));
  EXPECT_EQ(m.live(), (std::vector{id_of(1), id_of(me)}));
  pass(10ms);
  EXPECT_EQ(taken<membership::dial>().at(0).to, address_of(7));
}

TEST_F(membership_of, of_two_that_hear_of_each_other_the_smaller_dials_first) {
  join(1);
  news(1, record_of(3));
  pass(900ms, {1});
  EXPECT_TRUE(taken<membership::dial>().empty());
  pass(200ms, {1});
  EXPECT_EQ(taken<membership::dial>().size(), 1u);
}

TEST_F(membership_of, one_that_nobody_can_dial_waits_for_nobody) {
  membership deaf(id_of(me), 1, {}, {}, now);
  deaf.session_up(id_of(1), 1, {address_of(1)}, address_of(1), now);
  deaf.message(id_of(1), node_hello{record_of(1), false, {}, 2, 0}, now);
  deaf.message(id_of(1), node_news{false, false, {record_of(2)}}, now);
  deaf.tick(now);
  for (auto& a : deaf.take()) done.push_back(std::move(a));
  const auto dialled = taken<membership::dial>();
  ASSERT_EQ(dialled.size(), 1u);
  EXPECT_EQ(dialled[0].to, address_of(2));
}

TEST_F(membership_of, old_news_change_nothing) {
  join(1);
  news(1, record_of(7, node_claim::gone, 3));
  news(1, record_of(7, node_claim::live, 3));
  news(1, record_of(7, node_claim::suspect, 2));
  EXPECT_EQ(state(7), node_state::gone);
  news(1, record_of(7, node_claim::live, 4));
  EXPECT_EQ(state(7), node_state::candidate);
}

TEST_F(membership_of, records_join_to_the_same_in_any_order) {
  std::vector<node_record> all = {record_of(7, node_claim::live, 0),    record_of(7, node_claim::suspect, 0),
                                  record_of(7, node_claim::live, 1),    record_of(7, node_claim::gone, 1),
                                  record_of(7, node_claim::live, 0, 2), record_of(7, node_claim::suspect, 0, 2)};
  const auto less = [](const node_record& a, const node_record& b) { return wins_over(b, a); };
  std::sort(all.begin(), all.end(), less);
  do {
    membership x(id_of(me), 1, {}, {}, now);
    x.session_up(id_of(1), 1, {}, {}, now);
    x.message(id_of(1), node_hello{record_of(1), false, {}, 1, 0}, now);
    for (const node_record& r : all) x.message(id_of(1), node_news{false, false, {r}}, now);
    ASSERT_EQ(x.record_of(id_of(7))->incarnation, 2u);
    ASSERT_EQ(x.record_of(id_of(7))->claim, node_claim::suspect);
  } while (std::next_permutation(all.begin(), all.end(), less));
}

TEST_F(membership_of, who_was_late_itself_accuses_nobody) {
  join(1);
  pass(500ms, {1});
  now += 2s;  // it stood still
  m.tick(now);
  collect();
  EXPECT_EQ(state(1), node_state::live);
  pass(700ms);
  EXPECT_EQ(state(1), node_state::live);
  pass(3s);
  EXPECT_EQ(state(1), node_state::gone) << "but it does not wait for ever";
}

TEST_F(membership_of, more_members_than_fit_a_mesh_are_asked_in_turn) {
  membership_options few;
  few.mesh_max = 4;
  few.asked = 2;
  membership x(id_of(200), 1, {}, few, now);
  for (std::uint8_t n = 1; n <= 10; ++n) {
    x.session_up(id_of(n), 1, {}, {}, now);
    x.message(id_of(n), node_hello{record_of(n), false, {}, 1, 0}, now);
  }
  x.take();
  std::map<node_id, int> asked;
  for (int i = 0; i < 20; ++i) {
    now = std::max(now + 1ms, x.wake());
    x.tick(now);
    for (const auto& a : x.take())
      if (const auto* s = std::get_if<membership::send>(&a))
        if (const auto* b = std::get_if<node_beat>(&s->message)) {
          EXPECT_TRUE(b->answer);
          ++asked[s->to];
          x.heard(s->to, now + 1ms);
        }
  }
  EXPECT_EQ(asked.size(), 10u);
  for (const auto& [n, times] : asked) EXPECT_NEAR(times, 4, 1);
}

TEST_F(membership_of, nodes_that_are_gone_are_forgotten_in_the_end) {
  join(1);
  down(1);
  m.refused(address_of(1), true, now);
  pass(5s);
  const std::size_t before = m.remembered();
  pass(11min);
  EXPECT_LT(m.remembered(), before);
  EXPECT_EQ(state(1), node_state::unknown);
}

TEST_F(membership_of, more_nodes_than_it_may_remember_are_not_remembered) {
  membership_options small;
  small.nodes = 50;
  small.dials.addresses = 60;
  membership x(id_of(me), 1, {}, small, now);
  x.session_up(id_of(1), 1, {}, {}, now);
  x.message(id_of(1), node_hello{record_of(1), false, {}, 1, 0}, now);
  for (int i = 0; i < 1000; ++i) {
    node_record r = record_of(9);
    r.node.bytes[2] = static_cast<std::uint8_t>(i);
    r.node.bytes[3] = static_cast<std::uint8_t>(i >> 8);
    r.addresses = {{"10.1.1.1", static_cast<std::uint16_t>(i + 1)}};
    x.message(id_of(1), node_news{false, false, {r}}, now);
  }
  EXPECT_LE(x.remembered(), 110u);
}

}  // namespace
