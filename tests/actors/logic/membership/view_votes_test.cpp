// What this file is for: votes that gather on their way: joined in any order they are the same, and half is not enough.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/membership/view_votes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "actors/logic/membership/views.hpp"

namespace {

using namespace std::chrono_literals;
using namespace troupe::detail;
using namespace troupe::logic;

node_id id_of(std::size_t n) {
  node_id id;
  id.bytes[0] = static_cast<std::uint8_t>(n + 1);
  return id;
}
std::vector<node_id> ids(std::initializer_list<std::size_t> all) {
  std::vector<node_id> v;
  for (const std::size_t n : all) v.push_back(id_of(n));
  return v;
}

TEST(view_votes, a_change_says_who_is_out_by_place_and_who_is_new_by_id) {
  const view_change c = change_between(ids({4, 2, 9, 7}), ids({4, 9, 5, 6}));
  EXPECT_EQ(c.out, (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(c.in, ids({5, 6}));
  EXPECT_EQ(changed_by(ids({4, 2, 9, 7}), c), ids({4, 9, 5, 6}));
}

TEST(view_votes, a_change_that_does_not_fit_is_none) {
  EXPECT_FALSE(changed_by(ids({1, 2}), {{2}, {}}));
  EXPECT_FALSE(changed_by(ids({1, 2, 3}), {{1, 0}, {}}));
  EXPECT_FALSE(changed_by(ids({1, 2, 3}), {{1, 1}, {}}));
}

view_poll poll(std::uint32_t attempt, bool accepting = false) {
  return {2, id_of(0), {attempt, id_of(0)}, accepting, {}, {}, {}};
}

TEST(view_votes, of_two_the_newer_counts_and_of_the_same_all_votes) {
  view_votes a, b;
  a.begin(poll(1), 10);
  a.vote(3);
  b.begin(poll(1), 10);
  b.vote(9);
  EXPECT_TRUE(a.has_more_than(*b));
  EXPECT_EQ(a.join(*b, 10), view_votes::seen::same);
  EXPECT_EQ(a.count(), 2u);
  EXPECT_TRUE(a.has_voted(9));
  EXPECT_FALSE(a.has_voted(4));
  EXPECT_FALSE(b.has_more_than(*a));
  view_votes next;
  next.begin(poll(1, true), 10);
  EXPECT_EQ(next.join(*a, 10), view_votes::seen::old);
  EXPECT_EQ(next.count(), 0u);
  EXPECT_EQ(a.join(*next, 10), view_votes::seen::better);
  EXPECT_EQ(a.count(), 0u);
}

TEST(view_votes, those_of_no_member_are_not_counted) {
  view_votes a;
  view_poll p = poll(1);
  p.votes = {0xff, 0xff};  // of ten
  EXPECT_EQ(a.join(p, 10), view_votes::seen::same);
  EXPECT_FALSE(a);
  p.votes = {0xff};
  a.join(p, 10);
  EXPECT_FALSE(a);
  p.votes = {0xff, 0x03};
  a.join(p, 10);
  EXPECT_EQ(a.count(), 10u);
}

/// Nodes of which each tells some others, at random, what it has; some of it is lost.
class marketplace {
 public:
  marketplace(std::size_t n, std::uint64_t seed) : random(seed) {
    for (std::size_t i = 0; i < n; ++i) nodes.emplace_back(id_of(i));
    node_view all{2, id_of(0), {}};
    for (std::size_t i = 0; i < n; ++i) all.members.push_back(id_of(i));
    for (std::size_t i = 0; i < n; ++i) deliver(i, i, view_agreed{all});
  }
  void deliver(std::size_t from, std::size_t to, const membership_message& what) {
    views::outbox out;
    std::visit(
        [&](const auto& m) {
          if constexpr (requires { nodes[to].message(id_of(from), m, out); }) nodes[to].message(id_of(from), m, out);
        },
        what);
    note(to);
    for (auto& [next, m] : out)
      if (random() % 4) deliver(to, static_cast<std::size_t>(next.bytes[0] - 1), m);
  }
  void tick(std::size_t i, const std::vector<node_id>& sees, bool carried = true) {
    views::outbox out;
    nodes[i].tick(sees, now, out, carried);
    EXPECT_TRUE(!carried || out.empty()) << "nobody is asked by himself";
    note(i);
    for (auto& [to, m] : out)
      if (random() % 3) deliver(i, static_cast<std::size_t>(to.bytes[0] - 1), m);
  }
  /// Has each node that lives pass on what it has.
  void gossip(const std::vector<std::size_t>& live) {
    for (const std::size_t from : live) {
      const std::size_t to = live[random() % live.size()];
      if (from == to || random() % 4 == 0) continue;
      if (const view_poll* p = nodes[from].poll()) deliver(from, to, view_poll(*p));
      if (nodes[from].agreed().rank() <= nodes[to].agreed().rank()) continue;
      views::outbox out;
      nodes[from].tell_behind(id_of(to), nodes[to].agreed().rank(), out);
      for (auto& [n, m] : out) deliver(from, to, m);
    }
  }

  std::vector<views> nodes;
  views::time_point now{1h};
  std::mt19937_64 random;
  std::map<std::uint64_t, std::vector<node_id>> agreed;

 private:
  void note(std::size_t i) {
    const node_view& v = nodes[i].agreed();
    if (v.founder != id_of(0)) return;
    const auto [same, is_new] = agreed.try_emplace(v.number, v.members);
    ASSERT_TRUE(is_new || same->second == v.members) << "two views with number " << v.number;
  }
};

std::vector<std::size_t> range(std::size_t from, std::size_t to) {
  std::vector<std::size_t> all;
  for (; from < to; ++from) all.push_back(from);
  return all;
}
std::vector<node_id> ids_of(const std::vector<std::size_t>& all) {
  std::vector<node_id> v;
  for (const std::size_t n : all) v.push_back(id_of(n));
  return v;
}

/// Lets ten seconds pass in which those live, and take one another for alive.
void pass_ten_seconds(marketplace& m, const std::vector<std::size_t>& live) {
  for (int i = 0; i < 40; ++i, m.now += 250ms) {
    for (const std::size_t n : live) m.tick(n, ids_of(live));
    m.gossip(live);
  }
}

TEST(view_votes, a_majority_agrees_on_those_that_live_without_anybody_asking_all) {
  marketplace m(100, 1);
  const auto live = range(0, 60);
  pass_ten_seconds(m, live);
  for (const std::size_t n : live) {
    EXPECT_EQ(m.nodes[n].agreed().members, ids_of(live));
    EXPECT_EQ(m.nodes[n].agreed().number, 3u);
  }
}

TEST(view_votes, half_agrees_on_nothing) {
  marketplace m(100, 2);
  const auto live = range(0, 50);
  pass_ten_seconds(m, live);
  for (const std::size_t n : live) EXPECT_EQ(m.nodes[n].agreed().number, 2u);
}

/// Five with a view of all five; each hears what the test lets it hear.
class view_votes_of_five : public testing::Test {
 protected:
  view_votes_of_five() {
    for (std::size_t i = 0; i < 5; ++i) {
      nodes.emplace_back(id_of(i));
      nodes[i].message(id_of(i), view_agreed{{2, id_of(0), ids({0, 1, 2, 3, 4})}}, out);
    }
  }
  /// Has node i propose that these go on.
  void propose(std::size_t i, const std::vector<node_id>& sees) {
    for (int k = 0; k < 4; ++k, now += 300ms) nodes[i].tick(sees, now, out, true);
  }
  /// Tells `to` what `from` has gathered, and `from` what `to` has added.
  void tell(std::size_t from, std::size_t to) {
    if (const view_poll* p = nodes[from].poll()) nodes[to].message(id_of(from), view_poll(*p), out);
    if (const view_poll* p = nodes[to].poll()) nodes[from].message(id_of(to), view_poll(*p), out);
  }
  std::uint64_t number(std::size_t i) const { return nodes[i].agreed().number; }

  std::vector<views> nodes;
  views::outbox out;
  views::time_point now{1h};
};

TEST_F(view_votes_of_five, what_one_has_accepted_is_what_it_proposes_next) {
  propose(0, ids({0, 1, 2}));
  tell(0, 1);
  tell(0, 2);  // three have promised, and the first asks to accept
  ASSERT_TRUE(nodes[0].poll()->accepting);
  tell(0, 1);
  EXPECT_EQ(number(1), 2u) << "two of five are not enough";
  // The first has died. The second would rather go on with others.
  propose(1, ids({1, 3, 4}));
  for (int i = 0; i < 2; ++i)
    for (const std::size_t n : {3, 4}) tell(1, n);
  ASSERT_EQ(number(4), 3u);
  EXPECT_EQ(nodes[4].agreed().members, ids({0, 1, 2})) << "it might have been agreed on";
}

TEST_F(view_votes_of_five, who_has_promised_a_larger_ballot_accepts_no_smaller_one) {
  propose(0, ids({0, 1, 2}));
  tell(0, 1);
  tell(0, 2);
  ASSERT_TRUE(nodes[0].poll()->accepting);
  for (const std::size_t n : {1, 2}) nodes[n].message(id_of(3), view_prepare{3, id_of(0), {9, id_of(3)}}, out);
  tell(0, 1);
  tell(0, 2);
  for (const std::size_t n : {0, 1, 2}) EXPECT_EQ(number(n), 2u);
}

// By either way, and some by one and some by the other.
TEST(view_votes, for_one_number_there_is_one_view_whoever_proposes_and_whatever_is_lost) {
  std::uint64_t most = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    marketplace m(9, seed);
    const auto all = range(0, 9);
    for (int step = 0; step < 300 && !testing::Test::HasFatalFailure(); ++step) {
      const std::size_t i = m.random() % 9;
      std::vector<node_id> sees;
      for (const std::size_t n : all)
        if (n == i || (n < i ? m.random() % 3 == 0 : m.random() % 6 != 0)) sees.push_back(id_of(n));
      for (int k = 0; k < 4; ++k, m.now += 300ms) m.tick(i, sees, m.random() % 2 == 0);
      if (step % 3 == 0) m.gossip(all);
    }
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    for (int i = 0; i < 80; ++i, m.now += 250ms) {
      for (const std::size_t n : all) m.tick(n, ids_of(all));
      m.gossip(all);
    }
    for (const std::size_t n : all) EXPECT_EQ(m.nodes[n].agreed(), m.nodes[0].agreed()) << "seed " << seed;
    EXPECT_EQ(m.nodes[0].agreed().members.size(), 9u) << "seed " << seed;
    most = std::max(most, m.nodes[0].agreed().number);
  }
  EXPECT_GT(most, 5u) << "views have changed on the way";
}

}  // namespace
