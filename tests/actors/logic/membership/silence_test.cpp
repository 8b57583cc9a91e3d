// What this file is for: members that are not heard, or hear nothing: when they are suspect, asked about, given up.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <initializer_list>

#include "suite.hpp"

namespace {

using namespace membership_suite;

TEST_F(membership_of, a_member_gets_a_heartbeat_four_times_a_second) {
  join(1);
  done.clear();
  pass(10s, {1});
  EXPECT_NEAR(static_cast<double>(said<node_beat>().size()), 40, 1);
}

TEST_F(membership_of, a_silent_member_is_suspect_after_one_second_and_gone_after_three) {
  join(1);
  pass(990ms);
  EXPECT_EQ(state(1), node_state::live);
  pass(270ms);
  EXPECT_EQ(state(1), node_state::suspect);
  EXPECT_EQ(taken<membership::suspected>().size(), 1u);
  pass(1700ms);
  EXPECT_EQ(state(1), node_state::suspect);
  pass(300ms);
  EXPECT_EQ(state(1), node_state::gone);
  const auto gone = taken<membership::gone>();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].why, node_end::silent);
  EXPECT_EQ(taken<membership::close>().size(), 1u);
}

TEST_F(membership_of, any_byte_of_a_suspect_refutes) {
  join(1);
  pass(1500ms);
  ASSERT_EQ(state(1), node_state::suspect);
  m.heard(id_of(1), now);
  collect();
  EXPECT_EQ(state(1), node_state::live);
  EXPECT_EQ(taken<membership::refuted>().size(), 1u);
}

TEST_F(membership_of, three_others_are_asked_for_a_suspect_and_a_sign_of_life_keeps_it) {
  for (const std::uint8_t n : std::initializer_list<std::uint8_t>{1, 2, 3, 4, 6}) join(n);
  done.clear();
  pass(1300ms, {2, 3, 4, 6});
  ASSERT_EQ(state(1), node_state::suspect);
  const auto asked = said<node_probe>();
  ASSERT_EQ(asked.size(), 3u);
  for (const auto& [to, p] : asked) EXPECT_EQ(p.target, id_of(1));
  for (int i = 0; i < 20; ++i) {
    say(2, node_alive{id_of(1)});
    pass(500ms, {2, 3, 4, 6});
  }
  EXPECT_EQ(state(1), node_state::suspect) << "others hear of it, this node does not";
  pass(3500ms, {2, 3, 4, 6});
  EXPECT_EQ(state(1), node_state::gone);
}

TEST_F(membership_of, who_is_asked_for_another_answers_once_it_has_heard_of_it) {
  join(1);
  join(2);
  done.clear();
  say(1, node_probe{id_of(2)});
  EXPECT_TRUE(said<node_alive>().empty());
  ASSERT_EQ(said<node_beat>().size(), 1u);
  EXPECT_TRUE(said<node_beat>()[0].second.answer);
  pass(10ms, {2});
  ASSERT_EQ(said<node_alive>().size(), 1u);
  EXPECT_EQ(said<node_alive>()[0].first, id_of(1));
}

TEST_F(membership_of, one_that_hears_nothing_of_this_node_is_given_up_when_it_gives_this_node_up) {
  join(1);
  for (std::uint32_t deaf_ms = 250; deaf_ms < 750; deaf_ms += 250) {
    say(1, node_beat{false, 0, 0, {}, deaf_ms});
    pass(250ms, {1});
  }
  EXPECT_EQ(state(1), node_state::live) << "not yet a second";
  for (std::uint32_t deaf_ms = 750; deaf_ms < 1'250; deaf_ms += 250) {
    say(1, node_beat{false, 0, 0, {}, deaf_ms});
    pass(250ms, {1});
  }
  EXPECT_EQ(state(1), node_state::suspect) << "it is heard all the time";
  for (std::uint32_t deaf_ms = 1'250; deaf_ms < 3'000; deaf_ms += 250) {
    say(1, node_beat{false, 0, 0, {}, deaf_ms});
    pass(250ms, {1});
  }
  EXPECT_EQ(state(1), node_state::gone);
}

TEST_F(membership_of, one_that_hears_again_is_trusted_again) {
  join(1);
  say(1, node_beat{false, 0, 0, {}, 1'500});
  pass(250ms, {1});
  EXPECT_EQ(state(1), node_state::suspect);
  say(1, node_beat{});
  pass(250ms, {1});
  EXPECT_EQ(state(1), node_state::live);
}

TEST_F(membership_of, says_for_how_long_it_has_heard_nothing) {
  join(1);
  pass(400ms);
  for (const auto& [to, b] : said<node_beat>()) EXPECT_EQ(b.deaf_ms, 0u);
  done.clear();
  pass(800ms);
  ASSERT_GE(said<node_beat>().size(), 3u);
  EXPECT_NEAR(said<node_beat>().back().second.deaf_ms, 1'125, 130);
}

TEST_F(membership_of, one_that_hears_nobody_is_no_sign_of_life_for_others) {
  join(1);
  join(2);
  say(2, node_beat{false, 0, 0, {}, 600});
  say(1, node_probe{id_of(2)});
  pass(10ms, {2});
  EXPECT_TRUE(said<node_alive>().empty());
  say(2, node_beat{});
  pass(10ms, {2});
  EXPECT_EQ(said<node_alive>().size(), 1u);
}

TEST_F(membership_of, what_a_connection_delivers_late_is_no_sign_of_life_of_one_that_hears_nothing) {
  join(1);
  talk(1, 2s);
  const std::uint64_t last = own_time_said();
  const auto cut = now;
  for (const auto late : {200ms, 400ms, 800ms, 1'400ms}) {  // as TCP tries again
    pass(late);
    say(1, beat(100, last));
  }
  EXPECT_EQ(state(1), node_state::suspect) << "it is heard, but has heard nothing since";
  pass(std::chrono::duration_cast<std::chrono::milliseconds>(cut + 3'500ms - now));
  EXPECT_EQ(state(1), node_state::gone);
}

TEST_F(membership_of, one_that_is_suspect_is_trusted_once_it_has_heard_what_was_said_since) {
  join(1);
  talk(1, 2s);
  const std::uint64_t last = own_time_said();
  pass(1'500ms);
  ASSERT_EQ(state(1), node_state::suspect);
  say(1, beat(100, last));
  EXPECT_EQ(state(1), node_state::suspect);
  say(1, beat(101, own_time_said()));
  EXPECT_EQ(state(1), node_state::live);
}

TEST_F(membership_of, one_that_is_far_away_but_never_silent_is_live) {
  join(1);
  std::deque<std::uint64_t> on_their_way(16, 0);
  for (int i = 0; i < 60; ++i) {
    pass(250ms);
    on_their_way.push_back(own_time_said());
    say(1, beat(static_cast<std::uint64_t>(i + 1), on_their_way.front()));  // of four seconds ago
    on_their_way.pop_front();
    ASSERT_EQ(state(1), node_state::live);
  }
}

TEST_F(membership_of, what_comes_late_of_one_that_hears_nothing_is_no_sign_of_life_for_others) {
  join(1);
  join(2);
  talk(2, 2s);
  const std::uint64_t last = own_time_said();
  pass(1'500ms, {1});
  say(1, node_probe{id_of(2)});
  say(2, beat(100, last));
  pass(10ms, {1, 2});
  EXPECT_TRUE(said<node_alive>().empty());
  say(2, beat(101, own_time_said()));
  EXPECT_EQ(said<node_alive>().size(), 1u);
}

TEST_F(membership_of, the_first_word_of_one_that_hears_nothing_is_no_sign_of_life_for_others_either) {
  join(1);
  join(2);
  say(1, node_probe{id_of(2)});
  now += 10ms;
  say(2, node_beat{false, 0, 0, {}, 600});
  EXPECT_TRUE(said<node_alive>().empty());
}

TEST_F(membership_of, says_in_its_heartbeats_when_they_were_sent_and_what_it_has_heard) {
  join(1);
  say(1, beat(77, 0));
  pass(250ms);
  const auto first = said<node_beat>().back().second;
  pass(250ms);
  const auto second = said<node_beat>().back().second;
  EXPECT_EQ(second.heard, 77u);
  EXPECT_EQ(second.sent, first.sent + 250);
}

TEST_F(membership_of, a_session_that_ends_after_long_silence_gives_no_new_respite) {
  join(1);
  pass(2900ms);
  EXPECT_EQ(state(1), node_state::suspect);
  down(1);
  pass(300ms);
  EXPECT_EQ(state(1), node_state::gone);
}

}  // namespace
