// What this file is for: more members than fit a mesh, up to a thousand: the cost of each, and how soon they notice.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Faults at random: simulation_test.cpp. Here each has its time.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "world.hpp"

namespace {

using namespace std::chrono_literals;
using test::node;
using test::node_end;
using test::node_state;
using test::world;

/// True if all that live have lost it in time.
bool is_lost_in_time(world& w, const node& gone, std::chrono::milliseconds limit) {
  return w.until(
      [&] {
        const auto all = w.living();
        return std::all_of(all.begin(), all.end(), [&](const node* n) { return n == &gone || n->loss_of(gone); });
      },
      limit, 10ms);
}

struct costs {
  std::uint64_t mean = 0, most = 0;  // bytes that a node sends in a second
};
costs costs_of(world& w, std::chrono::seconds during) {
  std::map<const node*, std::uint64_t> before;
  for (const node* n : w.living()) before[n] = w.network.bytes_sent(n->wire_id());
  w.step(during);
  costs c;
  const auto s = static_cast<std::uint64_t>(during.count());
  for (const auto& [n, sent] : before) {
    if (!n->lives()) continue;
    const std::uint64_t bytes = (w.network.bytes_sent(n->wire_id()) - sent) / s;
    c.most = std::max(c.most, bytes);
    c.mean += bytes;
  }
  c.mean /= w.living().size();
  return c;
}

/// Members that it has given up; not those that were there before it knew of the others.
std::vector<std::string> losses_of(const world& w, const node& n) {
  std::vector<std::string> all;
  for (const node::event& e : n.told())
    if (e.what == "went" && e.why != node_end::let_go) all.push_back(w.name(e.who));
  return all;
}

std::size_t most_connections(const world& w) {
  std::size_t most = 0;
  for (const node* n : w.living()) most = std::max(most, w.connections(*n));
  return most;
}

std::vector<test::net::endpoint> first_three() {
  return {world::endpoint_of(0), world::endpoint_of(1), world::endpoint_of(2)};
}

/// Lets so many members live from their beginning on, and checks at each stage what must hold.
void live(std::size_t n) {
  world w(7 * n);
  w.start_all(n);
  ASSERT_TRUE(w.until([&] { return w.agree_on_view(); }, 30s, 100ms)) << "no view of all";
  w.step(5s);
  // Nobody is connected with all; 8 that it watches, those that watch it, a few more.
  EXPECT_LE(most_connections(w), 64u);
  const costs quiet = costs_of(w, 5s);
  EXPECT_LT(quiet.mean, 6'000u);
  EXPECT_LT(quiet.most, 12'000u) << "the one that sends most";

  w.kill(w[7]);
  EXPECT_TRUE(is_lost_in_time(w, w[7], 500ms)) << w.disagreement();
  EXPECT_TRUE(w.until([&] { return w.agree_on_view(); }, 10s, 100ms)) << "no view without it";

  w.pause(w[8]);
  const auto since = w.network.now();
  EXPECT_TRUE(is_lost_in_time(w, w[8], 4000ms)) << w.disagreement();
  EXPECT_GT(w[9].loss_of(w[8])->when - since, 2500ms) << "not before it was silent for long";
  w.resume(w[8]);
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 5s, 50ms)) << "one that comes back; " << w.disagreement();

  // Some come, and one says goodbye, while others are lost; all the others stay members for all.
  for (std::uint16_t i = 0; i < 5; ++i) w.start(static_cast<std::uint16_t>(n + i), first_three());
  w.leave(w[11]);
  w.kill(w[12]);
  const costs changing = costs_of(w, 5s);
  EXPECT_TRUE(w.agree()) << w.disagreement();
  EXPECT_LT(changing.mean, 10'000u);
  EXPECT_LT(changing.most, 50'000u);
  for (const node* x : w.living())
    if (x != &w[8]) {
      EXPECT_LE(losses_of(w, *x).size(), 4u) << testing::PrintToString(losses_of(w, *x));
    }
  EXPECT_TRUE(w.until([&] { return w.agree_on_view(); }, 10s, 100ms)) << "no view of those that came";
  testing::Test::RecordProperty("quiet_bytes_per_s", static_cast<int>(quiet.mean));
  testing::Test::RecordProperty("changing_bytes_per_s", static_cast<int>(changing.mean));
}

/// Two parts hear nothing of each other: the larger one goes on with a view of its own, and after that there is one of
/// all.
void part(std::size_t n) {
  world w(11 * n);
  w.start_all(n);
  ASSERT_TRUE(w.until([&] { return w.agree_on_view(); }, 30s, 100ms));
  std::vector<node*> few, most;
  for (std::size_t i = 0; i < n; ++i) (i % 3 == 0 ? few : most).push_back(&w[i]);
  w.split(few, most);
  const auto sees = [](const std::vector<node*>& part) {
    return std::all_of(part.begin(), part.end(),
                       [&](const node* x) { return x->members().live().size() == part.size(); });
  };
  EXPECT_TRUE(w.until([&] { return sees(few) && sees(most); }, 10s, 100ms)) << "the parts do not know that they are";
  const auto has_own = [&] {
    return std::all_of(most.begin(), most.end(),
                       [&](const node* x) { return x->members().view().members.size() == most.size(); });
  };
  EXPECT_TRUE(w.until(has_own, 10s, 100ms)) << "the larger part has no view of its own";
  for (const node* x : few) EXPECT_FALSE(x->members().has_majority());
  for (const node* x : few) EXPECT_EQ(x->members().view().members.size(), n) << "without a majority nothing is agreed";
  w.network.mend_all();
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 20s, 100ms)) << w.disagreement();
  EXPECT_TRUE(w.until([&] { return w.agree_on_view(); }, 20s, 100ms)) << "no view of all";
}

TEST(cluster_crowd, of_150_each_is_connected_with_few_and_notices_who_comes_and_goes) { live(150); }
TEST(cluster_crowd, two_parts_of_100_find_each_other_again) { part(100); }
TEST(slow_cluster_crowd, of_1000_each_is_connected_with_few_and_notices_who_comes_and_goes) { live(1000); }
TEST(slow_cluster_crowd, two_parts_of_300_find_each_other_again) { part(300); }

TEST(cluster_crowd, who_looks_for_company_is_linked_with_so_many_and_watches_them_as_in_a_mesh) {
  world w(3);
  w.start_all(100);
  w.step(5s);
  for (const auto& n : w.nodes) n->cluster().want_links(5);
  const auto links = [&](const node& n) {
    std::vector<node*> all;
    for (const auto& other : w.nodes)
      if (n.session_of(*other)) all.push_back(other.get());
    return all;
  };
  const auto has_company = [&] {
    return std::all_of(w.nodes.begin(), w.nodes.end(), [&](const auto& n) { return links(*n).size() >= 5; });
  };
  ASSERT_TRUE(w.until(has_company, 5s, 50ms));
  w.step(20s);
  EXPECT_TRUE(has_company()) << "links stay, whoever else is watched";
  for (const auto& n : w.nodes)
    for (const node* other : links(*n)) EXPECT_TRUE(other->session_of(*n)) << "a link has two ends";

  // Frames pass over a link.
  node &a = w[40], &b = *links(a)[0];
  int frames = 0;
  b.on_frame = [&](auto&, auto f) { frames += std::to_integer<int>(f[0]); };
  const std::byte work[] = {std::byte{0x10}, std::byte{1}};
  ASSERT_TRUE(a.session_of(b)->send(work));
  w.step(100ms);
  EXPECT_EQ(frames, 0x10);

  const auto lost = [](const node& n, const node& other) {
    return std::any_of(n.told().rbegin(), n.told().rend(),
                       [&](const node::event& e) { return e.what == "lost" && e.who == other.id(); });
  };
  node& killed = *links(a)[1];
  w.kill(killed);
  EXPECT_TRUE(w.until([&] { return lost(a, killed); }, 300ms, 5ms));
  node& silent = *links(a)[0];
  w.pause(silent);
  EXPECT_TRUE(w.until([&] { return lost(a, silent); }, 3500ms, 5ms));
  EXPECT_TRUE(w.until(
      [&] {
        return std::all_of(w.nodes.begin(), w.nodes.end(),
                           [&](const auto& n) { return !n->lives() || n->is_paused() || links(*n).size() >= 5; });
      },
      5s, 50ms))
      << "others take the place of those that are gone";
}

TEST(cluster_crowd, so_few_that_they_fit_a_mesh_again_are_all_linked) {
  world w(5);
  w.start_all(80);
  w.step(5s);
  for (std::size_t i = 20; i < 50; ++i) w.kill(w[i]);
  const auto is_mesh = [&] {
    for (const node* n : w.living())
      for (const node* other : w.living())
        if (n != other && !n->session_of(*other)) return false;
    return true;
  };
  EXPECT_TRUE(w.until(is_mesh, 10s, 100ms));
  EXPECT_TRUE(w.until([&] { return w.agree() && w.agree_on_view(); }, 10s, 100ms)) << w.disagreement();
  w.step(5s);
  EXPECT_TRUE(is_mesh() && w.agree()) << w.disagreement();
}

TEST(cluster_crowd, one_that_nobody_can_dial_is_noticed_when_it_is_silent) {
  world w(6);
  w.start_all(90);
  node& quiet = w.start_deaf(first_three());
  ASSERT_TRUE(w.until([&] { return w.agree(); }, 10s, 100ms)) << w.disagreement();
  w.step(5s);
  w.pause(quiet);
  EXPECT_TRUE(is_lost_in_time(w, quiet, 6s)) << w.disagreement();
}

TEST(cluster_crowd, two_that_cannot_reach_each_other_at_all_stay_members_while_others_reach_both) {
  world w(8);
  w.start_all(80);
  w.step(3s);
  for (std::size_t i = 1; i < 40; ++i) w.cut_both(w[0], w[i]);
  w.step(40s);
  for (const node* n : w.living()) EXPECT_EQ(n->count("went"), 0u) << w.name(n->id());
  w.network.mend_all();
  EXPECT_TRUE(w.until([&] { return w.agree(); }, 5s, 50ms)) << w.disagreement();
}

}  // namespace
