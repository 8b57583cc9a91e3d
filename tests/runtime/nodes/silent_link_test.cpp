// What this file is for: a connection of two members that carries nothing any more: another one goes on where it was.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "imagined_program.hpp"

namespace {

using namespace std::chrono_literals;
using test::imagined_node;
using test::imagined_world;
using test::program;

/// How often the connection with that one has been replaced; nothing if there is no link.
std::optional<std::uint64_t> resets(const imagined_node& at, const imagined_node& with) {
  for (const auto& l : at.the_engine().others()->links())
    if (l.to == with.name()) return l.resets;
  return {};
}

/// Some nodes that have come to know each other, and calls under way from the first.
struct nodes_at_work {
  nodes_at_work(std::uint64_t seed, std::uint16_t nodes) : w(seed) {
    test::begun().clear();
    w.body = 5ms;
    for (std::uint16_t i = 0; i < nodes; ++i) w.start(i, 1);
    w.run_for(2s);
    p.emplace(w, *w.nodes[0]);
    call(60);
    w.run_for(std::chrono::milliseconds(w.below(100)));
  }
  void call(int times) {
    for (int i = 0; i < times; ++i) p->call();
  }
  void finish() {
    for (int i = 0; i < 200 && p->unfinished() != 0; ++i) w.run_for(100ms);
    ASSERT_EQ(p->unfinished(), 0u);
    p->check(0);  // no call has lost its node
    w.run_for(4s);
  }
  imagined_node& node(std::size_t i) { return *w.nodes[i]; }

  imagined_world w;
  std::optional<program> p;
};

TEST(silent_links, are_replaced_and_nobody_is_given_up) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    nodes_at_work n(seed, 3);
    n.w.network.stall(n.node(0).id(), n.node(1).id());
    n.call(20);
    n.finish();
    EXPECT_EQ(resets(n.node(0), n.node(1)), 1u) << "given up, or never replaced";
    EXPECT_EQ(resets(n.node(1), n.node(0)), 1u);
    EXPECT_EQ(resets(n.node(0), n.node(2)), 0u);
  }
}

// A network that is away for 1.5 s: what is lost in it is tried again by its connection only at 3 s and later.
TEST(silent_links, after_a_cut_cost_no_member) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    nodes_at_work n(seed, 4);
    const imagined_node& away = n.node(1);
    for (const std::size_t i : {0u, 2u, 3u}) {
      n.w.network.cut(away.id(), n.node(i).id());
      n.w.network.cut(n.node(i).id(), away.id());
      n.w.network.stall(away.id(), n.node(i).id());
    }
    n.w.run_for(1500ms);
    n.w.network.mend_all();
    n.finish();
    for (const std::size_t i : {0u, 2u, 3u})
      EXPECT_EQ(resets(n.node(i), away), 1u) << n.node(i).name() << ": given up, or never replaced";
  }
}

}  // namespace
