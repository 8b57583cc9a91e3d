// What this file is for: a connection of two members that carries nothing any more: another one goes on where it was.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "imagined_program.hpp"

namespace {

using namespace std::chrono_literals;
using test::imagined_node;
using test::imagined_world;
using test::program;

/// How often the connection with that one has been replaced; nothing if there is no link.
std::optional<std::uint64_t> resets(const imagined_node& at, const imagined_node& with) {
  for (const auto& l : at.house().others()->links())
    if (l.to == with.name()) return l.resets;
  return {};
}

void finish(imagined_world& w, program& p) {
  for (int i = 0; i < 200 && p.unfinished() != 0; ++i) w.run_for(100ms);
  ASSERT_EQ(p.unfinished(), 0u);
  p.check(0);  // no call has lost its node
}

TEST(silent_links, are_replaced_and_nobody_is_given_up) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::begun().clear();
    imagined_world w(seed);
    w.body = 5ms;
    for (std::uint16_t i = 0; i < 3; ++i) w.start(i, 1);
    w.run_for(2s);
    program p(w, *w.nodes[0]);
    for (int i = 0; i < 60; ++i) p.call();
    w.run_for(std::chrono::milliseconds(w.below(100)));
    w.network.stall(w.nodes[0]->id(), w.nodes[1]->id());
    for (int i = 0; i < 20; ++i) p.call();
    finish(w, p);
    w.run_for(4s);
    EXPECT_EQ(resets(*w.nodes[0], *w.nodes[1]), 1u) << "given up, or never replaced";
    EXPECT_EQ(resets(*w.nodes[1], *w.nodes[0]), 1u);
    EXPECT_EQ(resets(*w.nodes[0], *w.nodes[2]), 0u);
  }
}

// A network that is away for 1.5 s: what is lost in it is tried again by its connection only at 3 s and later.
TEST(silent_links, after_a_cut_cost_no_member) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::begun().clear();
    imagined_world w(seed);
    w.body = 5ms;
    for (std::uint16_t i = 0; i < 4; ++i) w.start(i, 1);
    w.run_for(2s);
    program p(w, *w.nodes[0]);
    for (int i = 0; i < 60; ++i) p.call();
    w.run_for(std::chrono::milliseconds(w.below(100)));
    imagined_node& away = *w.nodes[1];
    for (const auto& n : w.nodes) {
      if (n.get() == &away) continue;
      w.network.cut(away.id(), n->id());
      w.network.cut(n->id(), away.id());
      w.network.stall(away.id(), n->id());
    }
    w.run_for(1500ms);
    w.network.mend_all();
    finish(w, p);
    w.run_for(4s);
    for (const auto& n : w.nodes) {
      if (n.get() == &away) continue;
      EXPECT_EQ(resets(*n, away), 1u) << n->name() << ": given up, or never replaced";
    }
  }
}

}  // namespace
