// What this file is for: programs on more imagined nodes than are all connected with each other, of which many die.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "imagined_program.hpp"

namespace {

using namespace std::chrono_literals;
using test::imagined_node;
using test::imagined_world;
using test::program;

// Beyond 64 members not all are connected with all.
TEST(work_simulation, of_more_nodes_than_are_all_connected_some_take_the_tasks_of_a_program) {
  imagined_world w(6);
  w.body = 20ms;  // long enough for tasks to wait, which is what more links are for
  for (std::uint16_t i = 0; i < 90; ++i) w.start(i, 1);
  w.run_for(10s);
  // All that began at once have links with those that they met first; this one has met nobody then.
  imagined_node& late = w.start(90, 1);
  w.run_for(5s);
  const auto nodes = [&] { return late.the_engine().others()->report().size(); };
  EXPECT_GE(nodes(), 8u);
  program p(w, late);
  for (int i = 0; i < 300; ++i) p.call();
  w.run_for(2s);
  EXPECT_EQ(nodes(), 15u) << "as many as it may work with";
  for (int i = 0; i < 100 && p.unfinished() != 0; ++i) w.run_for(100ms);
  ASSERT_EQ(p.unfinished(), 0u);
  p.check(0);

  // And nodes that it works with may die.
  for (int i = 0; i < 300; ++i) p.call();
  w.run_for(20ms);
  std::size_t killed = 0;
  for (const auto& r : late.the_engine().others()->report()) {
    const auto n = std::find_if(w.nodes.begin(), w.nodes.end(), [&](const auto& x) { return x->name() == r.name; });
    if (++killed > 3) break;
    (*n)->kill();
    (*n)->end();
  }
  for (int i = 0; i < 100 && p.unfinished() != 0; ++i) w.run_for(100ms);
  ASSERT_EQ(p.unfinished(), 0u);
  p.check(3);
}

TEST(slow_work_simulation, a_hundred_and_twenty_nodes_of_which_many_die_lose_nothing) {
  imagined_world w(3);
  w.body = 5ms;
  for (std::uint16_t i = 0; i < 120; ++i)
    w.start(i, 1 + i % 3, [&](troupe::options& o) { o.cluster.nodes_max = i < 2 ? 60 : 2; });
  w.run_for(3s);
  program first(w, *w.nodes[0]), second(w, *w.nodes[1]);
  const auto with = [&](std::size_t owner) { return w.nodes[owner]->the_engine().others()->report().size(); };
  // While tasks wait they ask for more and more to work with.
  const auto grow_to = [&](std::size_t n) {
    for (int i = 0; i < 100 && (with(0) < n || with(1) < n); ++i) {
      for (int k = 0; k < 100; ++k) first.call(), second.call();
      w.run_for(100ms);
    }
    return std::min(with(0), with(1));
  };
  ASSERT_EQ(grow_to(60), 60u);
  for (std::size_t i = 2; i < 82; ++i) {
    for (int k = 0; k < 20; ++k) first.call(), second.call();
    w.run_for(10ms);
    w.nodes[i]->kill();
    w.nodes[i]->end();
  }
  // Nodes that had to wait have the places of those that went.
  w.run_for(5s);
  EXPECT_EQ(grow_to(39), 39u);
  const auto unfinished = [&] { return first.unfinished() + second.unfinished(); };
  for (int i = 0; i < 1000 && unfinished() != 0; ++i) w.run_for(100ms);
  ASSERT_EQ(unfinished(), 0u);
  // So many go at once that some calls may have been on three of them.
  first.check(80);
  second.check(80);
}

// Every node is a whole runtime. Two programs work with hundreds of them, which go one after the other; the others look
// after each other, and take the places of those that have gone.
TEST(slow_work_simulation, a_thousand_nodes_of_which_many_die_lose_nothing) {
  imagined_world w(8);
  w.body = 5ms;
  constexpr std::uint16_t all = 1000;
  for (std::uint16_t i = 0; i < all; ++i)
    w.start(i, 1, [&](troupe::options& o) { o.cluster.nodes_max = i < 2 ? 300 : 2; });
  w.run_for(12s);
  program first(w, *w.nodes[0]), second(w, *w.nodes[1]);
  const auto with = [&](std::size_t owner) { return w.nodes[owner]->the_engine().others()->report(); };
  // While tasks wait they ask for more and more to work with.
  for (int i = 0; i < 100 && (with(0).size() < 100 || with(1).size() < 100); ++i) {
    for (int k = 0; k < 100; ++k) first.call(), second.call();
    w.run_for(100ms);
  }
  ASSERT_GE(with(0).size(), 100u);
  ASSERT_GE(with(1).size(), 100u);
  std::size_t killed = 0;
  const auto kill_one_of = [&](std::size_t owner) {
    const auto there = with(owner);
    const std::string& name = there[w.below(there.size())].name;
    const auto n = std::ranges::find_if(w.nodes, [&](const auto& x) { return x->name() == name; });
    if ((*n)->host() < 2) return;
    (*n)->kill();
    (*n)->end();
    ++killed;
  };
  for (int i = 0; i < 50; ++i) {
    for (int k = 0; k < 20; ++k) first.call(), second.call();
    w.run_for(10ms);
    kill_one_of(0);
    kill_one_of(1);
  }
  EXPECT_GE(killed, 90u);
  const auto unfinished = [&] { return first.unfinished() + second.unfinished(); };
  for (int i = 0; i < 1000 && unfinished() != 0; ++i) w.run_for(100ms);
  ASSERT_EQ(unfinished(), 0u);
  first.check(killed);
  second.check(killed);
  EXPECT_GE(with(0).size(), 50u) << "others have come in their place, or were there";
}

}  // namespace
