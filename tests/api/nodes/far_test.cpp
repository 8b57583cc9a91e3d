// What this file is for: a node that was believed to be far, and is not, is given tasks again without anybody's doing.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include <troupe/offer.hpp>

#include "nodes_apart.hpp"
#include "several_nodes.hpp"
#include "tests/api/gates.hpp"

namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::tasks_of;
using troupe::index_t;
using troupe::scope;

// As long as it takes, whatever it reads.
constexpr auto work = troupe::kernel<troupe::in<char, 1>>("far.work").on(troupe::cpu, [](troupe::view<const char, 1>) {
  for (const auto end = std::chrono::steady_clock::now() + 5ms; std::chrono::steady_clock::now() < end;)
    std::this_thread::yield();
});
const troupe::offer offered{work};

constexpr index_t tile = 32 << 10;

/// "b" is near, and believed to be far by "a", which has seen a slow way to it.
struct believed_far : test::nodes_apart {
  explicit believed_far(std::chrono::milliseconds link_check_after)
      : nodes_apart([&](troupe::options& o) { o.cluster.link_check_after = link_check_after; }),
        x(a.filled<char>({4 * tile}, troupe::tiles(tile), 'x')) {
    for (int i = 0; i < 4; ++i) a.spawn({.where = scope::here()}, work, troupe::read(fresh())).get();
    way->delay(200ms);
    EXPECT_TRUE(comes_true([&] {
      a.spawn(test::on("b"), work, troupe::read(fresh())).get();
      return believed() > 60ms;
    }));
    way->delay(0ms);
  }
  /// Data that only "a" has.
  troupe::array<char, 1> fresh() { return a.filled<char>({tile}, troupe::tiles(tile), 'y'); }
  /// Returns what it takes to bring a tile there, as "a" believes.
  std::chrono::nanoseconds believed() {
    const auto f = a.spawn(work, troupe::read(fresh()));
    f.get();
    for (const troupe::candidate& c : a.explain(f).candidates)
      if (c.executor == "b") return c.transfer;
    return 0ns;
  }
  /// Fewer tasks than are worth a far way; how many have gone to "b".
  std::uint64_t given() {
    const std::uint64_t before = tasks_of(a, "b");
    for (index_t i = 0; i < 4; ++i) a.spawn(work, troupe::read(x.sub(troupe::box<1>{{i * tile}, {(i + 1) * tile}})));
    a.wait_all();
    return tasks_of(a, "b") - before;
  }
  troupe::array<char, 1> x;
};

TEST(nodes_far, a_node_that_is_believed_to_be_far_is_found_to_be_near_and_given_tasks) {
  believed_far n(20ms);
  EXPECT_TRUE(comes_true([&] { return n.believed() < 10ms; }));
  EXPECT_TRUE(comes_true([&] { return n.given() != 0; }));
}

// The mistake that the other test would not see if there were none.
TEST(nodes_far, where_links_are_not_tried_a_node_that_is_believed_to_be_far_stays_so) {
  believed_far n(0ms);
  const auto before = n.believed();
  EXPECT_GT(before, 40ms);
  EXPECT_EQ(n.given(), 0u);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(n.believed(), before);
}

TEST(nodes_far, a_link_that_is_tried_and_carries_nothing_else_has_moved_nothing) {
  test::nodes_apart n([](troupe::options& o) { o.cluster.link_check_after = 1ms; });
  const auto bytes = [&] { return n.a.links().at(0).out.bytes; };
  const std::uint64_t before = bytes();
  ASSERT_TRUE(comes_true([&] { return bytes() > before + 3 * (48u << 10); }));
  EXPECT_EQ(n.a.links().at(0).out.bytes_per_second, 0);
  EXPECT_EQ(n.a.links().at(0).in.bytes_per_second, 0);
  EXPECT_EQ(tasks_of(n.a, "b"), 0u);
}

}  // namespace
