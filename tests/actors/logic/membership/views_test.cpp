// What this file is for: views: for each number at most one is agreed, and a majority is enough to go on.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/membership/views.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

namespace {

using namespace std::chrono_literals;
using namespace troupe::detail;
using troupe::logic::views;

node_id id_of(std::size_t n) {
  node_id id;
  id.bytes[0] = static_cast<std::uint8_t>(n + 1);
  return id;
}

/// Nodes whose messages are delivered one by one, in any order, or lost.
class parliament {
 public:
  explicit parliament(std::size_t n, std::uint64_t seed = 1) : random(seed) {
    for (std::size_t i = 0; i < n; ++i) {
      nodes.emplace_back(id_of(i));
      lives.push_back(true);
    }
  }
  std::vector<node_id> live() const {
    std::vector<node_id> all;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (lives[i]) all.push_back(id_of(i));
    return all;
  }
  void tick(std::size_t i, const std::vector<node_id>& sees) {
    views::outbox out;
    nodes[i].tick(sees, now, out);
    put(i, out);
    note(i);
  }
  void deliver(std::size_t at) {
    const auto [from, to, what] = mail[at];
    mail.erase(mail.begin() + static_cast<std::ptrdiff_t>(at));
    if (!lives[to]) return;
    views::outbox out;
    std::visit(
        [&](const auto& m) {
          if constexpr (requires { nodes[to].message(id_of(from), m, out); }) nodes[to].message(id_of(from), m, out);
        },
        what);
    put(to, out);
    note(to);
  }
  void deliver_all() {
    while (!mail.empty()) deliver(0);
  }
  /// Some heartbeats of all, over a network that is quick; they show which are behind.
  void run_heartbeats() {
    for (int i = 0; i < 8; ++i) {
      for (std::size_t n = 0; n < nodes.size(); ++n)
        if (lives[n]) tick(n, live());
      now += 250ms;
      deliver_all();
      for (std::size_t a = 0; a < nodes.size(); ++a)
        for (std::size_t b = 0; b < nodes.size(); ++b)
          if (lives[a] && lives[b] && nodes[b].agreed().rank() < nodes[a].agreed().rank())
            mail.push_back({a, b, view_agreed{nodes[a].agreed()}});
      deliver_all();
    }
  }

  struct letter {
    std::size_t from, to;
    membership_message what;
  };
  std::vector<views> nodes;
  std::vector<bool> lives;
  std::deque<letter> mail;
  views::time_point now{1h};
  std::mt19937_64 random;
  std::map<std::pair<node_id, std::uint64_t>, std::vector<node_id>> agreed;

 private:
  void put(std::size_t from, views::outbox& out) {
    for (auto& [to, m] : out) mail.push_back({from, static_cast<std::size_t>(to.bytes[0] - 1), std::move(m)});
  }
  void note(std::size_t i) {
    const node_view& v = nodes[i].agreed();
    const auto [same, is_new] = agreed.try_emplace({v.founder, v.number}, v.members);
    ASSERT_TRUE(is_new || same->second == v.members) << "two views with number " << v.number;
  }
};

TEST(views, begin_with_oneself) {
  const views v(id_of(3));
  EXPECT_EQ(v.agreed().members, std::vector{id_of(3)});
  EXPECT_TRUE(v.has_majority({id_of(3)}));
}

TEST(views, of_nodes_that_meet_become_one_with_all_of_them) {
  parliament p(5);
  p.run_heartbeats();
  p.run_heartbeats();
  for (const views& v : p.nodes) {
    EXPECT_EQ(v.agreed(), p.nodes[0].agreed());
    EXPECT_EQ(v.agreed().members.size(), 5u);
  }
}

TEST(views, keep_the_order_of_age_and_the_oldest_that_lives_coordinates) {
  parliament p(5);
  p.lives = {false, true, true, false, false};
  p.run_heartbeats();
  const auto before = p.nodes[1].agreed().members;
  p.lives = {true, true, true, true, false};
  p.run_heartbeats();
  p.run_heartbeats();
  const auto after = p.nodes[1].agreed().members;
  ASSERT_EQ(after.size(), 4u);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
  EXPECT_EQ(p.nodes[0].coordinator(p.live()), before[0]);
  p.lives[static_cast<std::size_t>(before[0].bytes[0] - 1)] = false;
  EXPECT_EQ(p.nodes[0].coordinator(p.live()), before[1]);
}

TEST(views, change_while_a_majority_lives_and_not_without) {
  parliament p(5);
  p.run_heartbeats();
  p.run_heartbeats();
  p.lives[4] = p.lives[3] = false;
  EXPECT_TRUE(p.nodes[0].has_majority(p.live()));
  p.run_heartbeats();
  EXPECT_EQ(p.nodes[0].agreed().members.size(), 3u);
  p.lives[2] = p.lives[1] = false;
  EXPECT_FALSE(p.nodes[0].has_majority(p.live()));
  p.run_heartbeats();
  EXPECT_EQ(p.nodes[0].agreed().members.size(), 3u);
}

TEST(views, of_two_have_a_majority_only_together) {
  parliament p(2);
  p.run_heartbeats();
  p.run_heartbeats();
  EXPECT_TRUE(p.nodes[0].has_majority({id_of(0), id_of(1)}));
  EXPECT_FALSE(p.nodes[0].has_majority({id_of(0)}));
  EXPECT_FALSE(p.nodes[1].has_majority({id_of(1)}));
}

TEST(views, what_some_may_have_agreed_on_is_what_the_next_proposer_proposes) {
  parliament p(3);
  p.run_heartbeats();
  p.run_heartbeats();
  const node_view base = p.nodes[0].agreed();
  const auto first = static_cast<std::size_t>(base.members[0].bytes[0] - 1);
  const auto second = static_cast<std::size_t>(base.members[1].bytes[0] - 1);
  // The oldest believes that the third is gone; its proposal is accepted by the second, and then it dies.
  const std::vector<node_id> two{std::min(base.members[0], base.members[1]),
                                 std::max(base.members[0], base.members[1])};
  for (int i = 0; i < 4; ++i, p.now += 250ms) p.tick(first, two);
  for (int i = 0; i < 100; ++i)
    for (std::size_t k = 0; k < p.mail.size(); ++k)
      if (p.mail[k].to == second || (p.mail[k].to == first && !std::holds_alternative<view_accepted>(p.mail[k].what))) {
        p.deliver(k);
        break;
      }
  p.mail.clear();
  p.lives[first] = false;
  // The second would rather have itself and the third.
  p.run_heartbeats();
  const auto after = p.agreed.find({base.founder, base.number + 1});
  ASSERT_NE(after, p.agreed.end());
  EXPECT_EQ(after->second, (std::vector{base.members[0], base.members[1]})) << "it might have been agreed on";
}

TEST(views, are_never_two_with_one_number_whoever_sees_whom_and_whatever_is_lost) {
  std::size_t most = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    parliament p(5, seed);
    p.run_heartbeats();
    p.run_heartbeats();
    for (int step = 0; step < 400; ++step) {
      const std::uint64_t dice = p.random() % 10;
      if (dice < 3) {
        const std::size_t i = p.random() % 5;
        std::vector<node_id> sees;
        for (std::size_t n = 0; n < 5; ++n)
          if (n == i || p.random() % 4) sees.push_back(id_of(n));
        for (int k = 0; k < 3; ++k, p.now += 300ms) p.tick(i, sees);
      } else if (!p.mail.empty()) {
        const std::size_t at = p.random() % p.mail.size();
        if (dice == 9)
          p.mail.erase(p.mail.begin() + static_cast<std::ptrdiff_t>(at));
        else
          p.deliver(at);
      }
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    }
    p.mail.clear();
    p.run_heartbeats();
    p.run_heartbeats();
    p.run_heartbeats();
    EXPECT_EQ(p.nodes[0].agreed(), p.nodes[4].agreed()) << "seed " << seed;
    EXPECT_EQ(p.nodes[0].agreed().members.size(), 5u) << "seed " << seed;
    most = std::max<std::size_t>(most, p.nodes[0].agreed().number);
  }
  EXPECT_GT(most, 5u) << "views have changed on the way";
}

}  // namespace
