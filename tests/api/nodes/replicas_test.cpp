// What this file is for: what is still there when a node goes: results of calls that run once, copies, bases on a disk.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Runtimes of this process. A node goes when the proxy does through which alone it can be reached.
#include <atomic>
#include <functional>

#include <troupe/offer.hpp>

#include "nodes_apart.hpp"
#include "several_nodes.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using test::on;
using troupe::index_t;
using troupe::scope;
using namespace std::chrono_literals;

std::atomic<int> bodies{0};

void add_to(troupe::view<int, 1> a, int by) {
  ++bodies;
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += by;
}
constexpr auto add = troupe::kernel<troupe::inout<int, 1>, int>("replicas.add").on(troupe::cpu, add_to);
constexpr auto add_once =
    troupe::kernel<troupe::inout<int, 1>, int>("replicas.add_once").on(troupe::cpu, add_to).once();
constexpr auto add_slowly =
    troupe::kernel<troupe::inout<int, 1>, int>("replicas.add_slowly")
        .on(troupe::cpu, [](troupe::view<int, 1> a, int by) {
          add_to(a, by);
          for (const auto end = std::chrono::steady_clock::now() + 1ms; std::chrono::steady_clock::now() < end;) {
          }
        });
constexpr auto set =
    troupe::kernel<troupe::out<int, 1>, int>("replicas.set").on(troupe::cpu, [](troupe::view<int, 1> a, int to) {
      for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = to + static_cast<int>(i);
    });
constexpr auto twice = troupe::kernel<troupe::in<int, 1>, troupe::out<int, 1>>("replicas.twice")
                           .on(troupe::cpu, [](troupe::view<const int, 1> from, troupe::view<int, 1> to) {
                             ++bodies;
                             for (index_t i = to.lo(0); i < to.hi(0); ++i) to(i) = 2 * from(i);
                           });

const troupe::offer offered{add, add_once, add_slowly, set, twice};

/// Bodies are counted from here on.
struct mortal : test::nodes_apart {
  explicit mortal(const std::function<void(troupe::options&)>& more = {}) : nodes_apart(more) { bodies = 0; }
  std::uint64_t bytes_home() const {
    for (const auto& e : a.executors())
      if (e.name == "b") return e.bytes_out;
    return 0;
  }
};

template <class F>
void expect(const troupe::array<int, 1>& there, F&& f) {
  const auto v = there.read();
  for (index_t i = 0; i < there.size(0); ++i) ASSERT_EQ(v(i), f(i)) << i;
}

TEST(nodes_replicas, what_ran_once_and_has_ended_is_not_lost_with_its_node) {
  mortal n;
  constexpr index_t size = 4 << 20;
  const auto x = n.a.filled<int>({size}, troupe::tiles(size / 4), 1);
  for (int i = 1; i <= 3; ++i) n.a.for_each(on("b"), troupe::grid(size), add_once, troupe::update(x), i).get();
  n.part();
  expect(x, [](index_t) { return 7; });
  EXPECT_EQ(bodies.load(), 12);
}

TEST(nodes_replicas, what_has_come_home_is_not_fetched_again) {
  mortal n;
  constexpr index_t size = 1 << 20;
  const auto x = n.a.filled<int>({size}, troupe::tiles(size), 1);
  n.a.spawn(on("b"), add_once, troupe::update(x), 1).get();
  expect(x, [](index_t) { return 2; });
  EXPECT_EQ(n.bytes_home(), size * sizeof(int));
  n.a.spawn(on("b"), add, troupe::update(x), 1).get();  // nor sent
  EXPECT_EQ(bodies.load(), 2);
  expect(x, [](index_t) { return 3; });
  EXPECT_EQ(n.bytes_home(), 2 * size * sizeof(int));
}

TEST(nodes_replicas, a_chain_is_copied_while_it_goes_on) {
  mortal n([](troupe::options& o) { o.cluster.replay_max = 20ms; });
  constexpr index_t size = 1 << 16;
  const auto x = n.a.filled<int>({size}, troupe::tiles(size), 0);
  for (int i = 0; i < 400; ++i) n.a.spawn(on("b"), add_slowly, troupe::update(x), 1);
  n.a.wait_all();
  ASSERT_EQ(bodies.load(), 400);
  n.part();
  expect(x, [](index_t) { return 400; });
  EXPECT_LT(bodies.load(), 600) << "of 400 ms of bodies, 20 ms and what was under way";
}

TEST(nodes_replicas, memory_of_the_caller_is_copied_into_while_a_chain_goes_on) {
  constexpr index_t size = 1 << 16;
  std::vector<int> mine(size, 5);
  mortal n([](troupe::options& o) { o.cluster.replay_max = 5ms; });
  const auto y = n.a.borrow<int>(std::span(mine), {size}, troupe::tiles(size / 4), "y", {.replicas = 2});
  for (int i = 0; i < 50; ++i) n.a.for_each(on("b"), troupe::grid(size), add_slowly, troupe::update(y), 1);
  n.a.wait_all();
  n.part();
  expect(y, [](index_t) { return 55; });
  for (const int v : mine) ASSERT_EQ(v, 55);
}

TEST(nodes_replicas, an_array_with_two_is_here_too_once_it_is_left_alone) {
  for (const int replicas : {1, 2}) {
    mortal n;
    constexpr index_t size = 1 << 16;
    const auto x = n.a.filled<int>({size}, troupe::tiles(size), 0, "x", {.replicas = replicas});
    for (std::uint64_t i = 1; i <= 20; ++i) {
      n.a.spawn(on("b"), add, troupe::update(x), 1).get();
      if (replicas == 2) {
        ASSERT_TRUE(test::comes_true([&] { return n.bytes_home() == i * size * sizeof(int); }));
      }
    }
    n.part();
    expect(x, [](index_t) { return 20; });
    if (replicas == 2)
      EXPECT_LE(bodies.load(), 21) << "the last one may have been on its way";
    else
      EXPECT_EQ(bodies.load(), 40);
  }
}

TEST(nodes_replicas, more_than_two_or_none_are_refused) {
  troupe::runtime rt;
  for (const int replicas : {-1, 0, 3}) try {
      rt.array<int>({10}, "x", {.replicas = replicas});
      FAIL() << replicas;
    } catch (const troupe::error& e) {
      EXPECT_EQ(e.code(), troupe::errc::bad_argument);
      EXPECT_NE(std::string(e.what()).find("replicas"), std::string::npos) << e.what();
    }
}

TEST(nodes_replicas, less_than_nothing_to_repeat_is_refused) {
  troupe::options o = test::node_options("a");
  o.cluster.replay_max = -1ms;
  try {
    troupe::runtime rt(o);
    FAIL();
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), troupe::errc::bad_argument);
  }
}

// A tile was computed elsewhere from what is on this node's disk meanwhile.
TEST(nodes_replicas, what_a_lost_tile_was_made_of_may_be_on_the_disk) {
  constexpr index_t tile = 1 << 14, tiles = 4, size = tile * tiles;
  test::scratch_folder folder;
  mortal n([&](troupe::options& o) {
    o.memory_bytes = 8 * tile * sizeof(int);
    o.spill_directory = folder.path().string();
  });
  const auto from = n.a.array<int>({size}, troupe::tiles(tile)), to = n.a.array<int>({size}, troupe::tiles(tile));
  n.a.for_each({.where = scope::here()}, troupe::grid(size), set, troupe::write(from), 3);
  n.a.for_each(on("b"), troupe::grid(size).chunks(tile), twice, troupe::read(from), troupe::write(to));
  n.a.wait_all();  // so that `from` was used before all of `to`
  n.a.for_each(on("b"), troupe::grid(size), add, troupe::update(to), 1);
  n.a.wait_all();
  const auto other = n.a.array<int>({size}, troupe::tiles(tile));  // for which `from` leaves
  n.a.for_each({.where = scope::here()}, troupe::grid(size), set, troupe::write(other), 0).get();
  EXPECT_GE(n.a.report().bytes_spilled, size * sizeof(int));
  ASSERT_EQ(bodies.load(), 2 * tiles);
  n.part();
  expect(to, [](index_t i) { return 2 * (3 + static_cast<int>(i)) + 1; });
  EXPECT_EQ(bodies.load(), 4 * tiles);
  expect(from, [](index_t i) { return 3 + static_cast<int>(i); });
}

}  // namespace
