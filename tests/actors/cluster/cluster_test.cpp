// What this file is for: nodes that find each other, lose each other and come back, over a network in virtual time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/cluster/cluster.hpp"

#include <gtest/gtest.h>

#include "world.hpp"

namespace {

using namespace std::chrono_literals;
using test::node;
using test::node_end;
using test::node_state;
using test::world;

TEST(cluster, two_nodes_find_each_other_when_one_is_told_of_the_other) {
  world w(1);
  node& a = w.start(0, {});
  node& b = w.start(1, {a.at()});
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 1s)) << w.disagreement();
  EXPECT_TRUE(a.session_of(b));
  EXPECT_EQ(a.count("joined"), 1u);
  EXPECT_EQ(b.count("joined"), 1u);
}

TEST(cluster, those_who_know_one_hear_of_all) {
  world w(2);
  node& first = w.start(0, {});
  for (std::uint16_t i = 1; i < 8; ++i) w.start(i, {first.at()});
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 5s)) << w.disagreement();
  EXPECT_TRUE(w.until([&] { return w.agree_on_view(); }, 5s));
  EXPECT_TRUE(first.members().has_majority());
}

TEST(cluster, ten_that_join_at_once_are_members_within_two_seconds) {
  world w(3);
  w.start_all(5);
  for (std::uint16_t i = 5; i < 15; ++i) w.start(i, {w[0].at()});
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 2s)) << w.disagreement();
}

TEST(cluster, a_killed_process_is_gone_within_300_ms) {
  world w(4);
  w.start_all(5);
  w.kill(w[2]);
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 300ms, 5ms)) << w.disagreement();
  ASSERT_TRUE(w[0].loss_of(w[2]));
  EXPECT_EQ(w[0].loss_of(w[2])->why == node_end::ended || w[0].loss_of(w[2])->why == node_end::said, true);
}

TEST(cluster, a_silent_process_is_gone_within_3500_ms) {
  world w(5);
  w.start_all(5);
  w.pause(w[2]);
  const auto since = w.network.now();
  const auto lost = [&](std::size_t i) { return w[i].loss_of(w[2]) != nullptr; };
  EXPECT_TRUE(w.until([&] { return lost(0) && lost(1) && lost(3) && lost(4); }, 3500ms));
  EXPECT_GT(w[0].loss_of(w[2])->when - since, 2500ms);
}

TEST(cluster, who_stood_still_for_two_seconds_is_lost_by_nobody_and_loses_nobody) {
  world w(6);
  w.start_all(5);
  w.pause(w[2]);
  w.step(2s);
  w.resume(w[2]);
  w.step(5s);
  EXPECT_TRUE(w.agree()) << w.disagreement();
  for (const auto& n : w.nodes) EXPECT_EQ(n->count("lost"), 0u);
  EXPECT_EQ(w[2].count("suspected"), 0u) << "who was late itself accuses nobody";
  EXPECT_EQ(w[0].count("suspected"), 1u);
  EXPECT_EQ(w[0].count("refuted"), 1u);
}

TEST(cluster, who_stood_still_for_twenty_seconds_comes_back_as_new_on_both_sides) {
  world w(7);
  w.start_all(4);
  w.pause(w[2]);
  w.step(20s);
  EXPECT_EQ(w[0].sees(w[2]), node_state::gone);
  w.resume(w[2]);
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 5s)) << w.disagreement();
  EXPECT_EQ(w[0].count("lost"), 1u);
  EXPECT_EQ(w[2].count("lost"), 3u);
  EXPECT_EQ(w[2].loss_of(w[0])->why, node_end::forgot_us);
}

TEST(cluster, a_reset_of_a_connection_kills_nobody) {
  world w(8);
  w.start_all(4);
  for (int i = 0; i < 20; ++i) {
    w.reset(w[0], w[1]);
    w.step(500ms);
  }
  EXPECT_TRUE(w.agree()) << w.disagreement();
  for (const auto& n : w.nodes) EXPECT_EQ(n->count("lost"), 0u);
  EXPECT_EQ(w[0].count("resumed"), 20u);
  EXPECT_EQ(w[0].count("suspected"), w[0].count("refuted"));
}

TEST(cluster, connections_of_which_one_in_twenty_breaks_kill_nobody) {
  world w(9);
  w.start_all(8);
  w.network.break_dials(0.05);
  w.network.set_links({50us, 2ms, 0, 0.05});
  for (int i = 0; i < 60; ++i) {
    for (const auto& a : w.nodes)
      for (const auto& b : w.nodes)
        if (a->id() < b->id() && w.random() % 20 == 0) w.reset(*a, *b);
    w.step(500ms);
  }
  w.network.break_dials(0);
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 10s)) << w.disagreement();
  for (const auto& n : w.nodes) EXPECT_EQ(n->count("lost"), 0u);
}

TEST(cluster, a_path_that_is_cut_one_way_kills_nobody_while_others_hear_of_both) {
  world w(10);
  w.start_all(6);
  w.cut(w[0], w[1]);
  w.step(30s);
  for (const auto& n : w.nodes) EXPECT_EQ(n->count("lost"), 0u);
  EXPECT_EQ(w[1].sees(w[0]), node_state::suspect);
  w.network.mend_all();
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 15s)) << w.disagreement();
  for (const auto& n : w.nodes) EXPECT_EQ(n->count("lost"), 0u);
}

TEST(cluster, two_that_cannot_reach_each_other_at_all_stay_members_while_others_reach_both) {
  world w(11);
  w.start_all(6);
  w.cut_both(w[0], w[1]);
  w.reset(w[0], w[1]);
  w.step(30s);
  for (const auto& n : w.nodes) EXPECT_EQ(n->count("lost"), 0u);
  w.network.mend_all();
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 15s)) << w.disagreement();
}

TEST(cluster, parts_that_were_apart_find_each_other_and_only_the_larger_had_a_majority) {
  world w(12);
  w.start_all(5);
  ASSERT_TRUE(w.until([&] { return w.agree_on_view(); }, 5s));
  w.split({&w[0], &w[1]}, {&w[2], &w[3], &w[4]});
  w.step(6s);
  for (int i : {0, 1}) EXPECT_FALSE(w[static_cast<std::size_t>(i)].members().has_majority());
  for (int i : {2, 3, 4}) {
    EXPECT_TRUE(w[static_cast<std::size_t>(i)].members().has_majority());
    EXPECT_EQ(w[static_cast<std::size_t>(i)].members().view().members.size(), 3u);
  }
  w.network.mend_all();
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 15s)) << w.disagreement();
  EXPECT_TRUE(w.until([&] { return w.agree_on_view(); }, 5s));
}

TEST(cluster, a_process_that_is_restarted_at_its_address_takes_the_place_of_the_old_one) {
  world w(13);
  w.start_all(4);
  w.kill(w[3]);
  node& again = w.start(3, {w[0].at()});
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 2s)) << w.disagreement();
  EXPECT_NE(again.id(), w[3].id());
  EXPECT_EQ(w[0].count("lost"), 1u);
}

TEST(cluster, the_same_id_with_a_larger_incarnation_is_another_process) {
  world w(14);
  w.start_all(4);
  w.kill(w[3]);
  w.start(3, {w[0].at()}, &w[3]);
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 2s)) << w.disagreement();
  EXPECT_EQ(w[0].count("lost"), 1u);
  EXPECT_EQ(w[0].count("joined"), 4u);
}

TEST(cluster, seven_of_ten_that_are_killed_at_once_are_gone_within_300_ms) {
  world w(15);
  w.start_all(10);
  ASSERT_TRUE(w.until([&] { return w.agree_on_view(); }, 5s));
  for (std::size_t i = 0; i < 7; ++i) w.kill(w[i]);
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 300ms, 5ms)) << w.disagreement();
  EXPECT_FALSE(w[8].members().has_majority());
}

TEST(cluster, who_leaves_says_so_and_is_not_called_again) {
  world w(16);
  w.start_all(4);
  bool done = false;
  w[1].cluster().leave([&] { done = true; });
  EXPECT_TRUE(w.until([&] { return done; }, 500ms));
  w.kill(w[1]);
  w.step(3s);
  EXPECT_TRUE(w.agree()) << w.disagreement();
  for (std::size_t i : {0u, 2u, 3u}) EXPECT_EQ(w[i].loss_of(w[1])->why, node_end::left);
  EXPECT_TRUE(w.until([&] { return w.agree_on_view(); }, 2s));
}

TEST(cluster, who_is_given_up_joins_again_as_new_on_both_sides) {
  world w(31);
  w.start_all(4);
  w[1].cluster().give_up(w[2].id());
  ASSERT_TRUE(w.until([&] { return w[1].loss_of(w[2]) && w[2].loss_of(w[1]); }, 2s));
  EXPECT_EQ(w[1].loss_of(w[2])->why, node_end::given_up);
  EXPECT_EQ(w[2].loss_of(w[1])->why, node_end::forgot_us);
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 2s)) << w.disagreement();
  EXPECT_EQ(w[0].count("lost"), 0u);
  EXPECT_EQ(w[3].count("lost"), 0u);
}

TEST(cluster, frames_of_members_pass_and_those_of_membership_do_not) {
  world w(17);
  w.start_all(2);
  int frames = 0;
  w[1].on_frame = [&](auto&, auto f) { frames += std::to_integer<int>(f[0]); };
  const std::byte work[] = {std::byte{0x10}, std::byte{1}};
  ASSERT_TRUE(w[0].session_of(w[1])->send(work));
  w.step(1s);
  EXPECT_EQ(frames, 0x10);
}

TEST(cluster, a_frame_that_is_no_message_ends_the_session_and_kills_nobody) {
  world w(18);
  w.start_all(2);
  const std::byte broken[] = {std::byte{0x02}, std::byte{7}};
  ASSERT_TRUE(w[0].session_of(w[1])->send(broken));
  w.step(1s);
  EXPECT_TRUE(w.agree());
  EXPECT_EQ(w[1].count("resumed"), 1u);
  EXPECT_EQ(w[1].count("lost"), 0u);
}

TEST(cluster, heartbeats_and_gossip_of_64_nodes_cost_each_less_than_50_kB_per_second) {
  world w(19);
  w.start_all(64);
  const auto most = [&] {
    std::map<const node*, std::uint64_t> before;
    for (const auto& n : w.nodes) before[n.get()] = w.network.bytes_sent(n->wire_id());
    w.step(10s);
    std::uint64_t largest = 0;
    for (const auto& n : w.nodes) largest = std::max(largest, w.network.bytes_sent(n->wire_id()) - before[n.get()]);
    return largest / 10;
  };
  w.step(3s);
  const std::uint64_t quiet = most();
  w.kill(w[5]);
  w.start(70, {w[0].at()});
  const std::uint64_t busy = most();
  EXPECT_LT(quiet, 25'000u);  // and as much comes in
  EXPECT_LT(busy, 50'000u) << "the one that sends most, while members come and go";
  RecordProperty("quiet_bytes_per_s", static_cast<int>(quiet));
  RecordProperty("busy_bytes_per_s", static_cast<int>(busy));
}

TEST(cluster, a_hundred_nodes_notice_a_killed_and_a_silent_one_in_time) {
  world w(20);
  w.start_all(100);
  w.step(2s);
  w.kill(w[7]);
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 300ms, 10ms)) << w.disagreement();
  w.step(2s);
  const auto sent = w.network.bytes_sent(w[9].wire_id());
  w.step(5s);
  EXPECT_LT(w.network.bytes_sent(w[9].wire_id()) - sent, 5 * 25'000u);
  for (const node* n : w.living()) EXPECT_LE(n->count("lost"), 1u);
  for (const node* n : w.living()) EXPECT_EQ(n->count("went"), 1u);
  w.pause(w[8]);
  const auto lost = [&] {
    for (const node* n : w.living())
      if (n != &w[8] && !n->loss_of(w[8])) return false;
    return true;
  };
  EXPECT_TRUE(w.until(lost, 3500ms));
}

}  // namespace
