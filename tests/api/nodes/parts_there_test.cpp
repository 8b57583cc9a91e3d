// What this file is for: of a tile that is here, nodes read parts while others are changed here.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "several_nodes.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using test::several_nodes;
using troupe::index_t;
using word = std::uint64_t;

constexpr auto add_up =
    kernel<in<word, 1>, inout<word, 1>>("parts.add_up").on(cpu, [](view<const word, 1> from, view<word, 1> sum) {
      for (index_t i = from.lo(0); i < from.hi(0); ++i) sum(0) += from(i);
    });
std::atomic<bool> may_end{true}, has_begun{false};
constexpr auto change = kernel<inout<word, 1>>("parts.change").on(cpu, [](view<word, 1> to) {
  has_begun = true;
  has_begun.notify_all();
  may_end.wait(false);
  for (index_t i = to.lo(0); i < to.hi(0); ++i) to(i) = 50;
});
const offer offered{add_up, change};

TEST(nodes_parts_there, are_read_while_a_view_of_others_is_open_here) {
  several_nodes n(1);
  const auto x = n.a.filled({8}, tiles(8), word{1}), sum = n.a.filled({1}, tiles(1), word{0});
  {
    auto v = x.sub({{1}, {2}}).update();
    for (int i = 0; i < 3; ++i)
      n.a.spawn({.where = scope::at("b")}, add_up, read(x.sub({{4}, {8}})), update(sum)).get();
    v(0) = 77;
  }
  EXPECT_EQ(sum.read()(0), 12u);
  n.a.spawn({.where = scope::at("b")}, add_up, read(x.sub({{0}, {5}})), update(sum));
  EXPECT_EQ(sum.read()(0), 12u + 77 + 4);
}

TEST(nodes_parts_there, are_read_while_a_body_here_changes_others) {
  several_nodes n(1, 2);
  const auto x = n.a.filled({8}, tiles(8), word{1}), sum = n.a.filled({1}, tiles(1), word{0});
  may_end = has_begun = false;
  const auto changes = n.a.spawn({.where = scope::here()}, change, update(x.sub({{1}, {3}})));
  has_begun.wait(false);
  const auto reads = n.a.spawn({.where = scope::at("b")}, add_up, read(x.sub({{4}, {8}})), update(sum));
  const bool has_read = reads.wait_for(20s);
  may_end = true;
  may_end.notify_all();
  EXPECT_TRUE(has_read);
  reads.get();
  changes.get();
  n.a.spawn({.where = scope::at("b")}, add_up, read(x), update(sum)).get();
  EXPECT_EQ(sum.read()(0), 4u + 6 + 100);
}

}  // namespace
