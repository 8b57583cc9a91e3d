// What this file is for: runs of recorded graphs hold boxes of the tiles of which they only read boxes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "several_nodes.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using test::several_nodes;
using troupe::index_t;
using word = std::uint64_t;

// Tells all elements of a box and their order.
word told(word so_far, word element) { return (so_far ^ element) * 0xbf58476d1ce4e5b9u + (so_far >> 29); }
constexpr auto take =
    kernel<in<word, 2>, out<word, 1>>("boxes.take").on(cpu, [](view<const word, 2> from, view<word, 1> to) {
      word x = 1;
      for (index_t i = from.lo(0); i < from.hi(0); ++i)
        for (index_t j = from.lo(1); j < from.hi(1); ++j) x = told(x, from(i, j));
      to(to.lo(0)) = x;
    });
constexpr auto change = kernel<inout<word, 2>, word>("boxes.change").on(cpu, [](view<word, 2> a, word by) {
  word n = by;
  for (index_t i = a.lo(0); i < a.hi(0); ++i)
    for (index_t j = a.lo(1); j < a.hi(1); ++j) a(i, j) = told(a(i, j), ++n);
});
constexpr auto spoil =
    kernel<out<word, 2>>("boxes.spoil").on(cpu, [](view<word, 2>) { throw std::runtime_error("spoilt"); });
const offer offered{take, change, spoil};

/// An array, and what it holds.
struct field {
  field(runtime& rt, index_t r, index_t c, index_t tile_rows, index_t tile_columns)
      : rows(r),
        columns(c),
        all(rt.array<word, 2>({r, c}, tiles(tile_rows, tile_columns))),
        model(static_cast<std::size_t>(r * c)) {
    const auto v = all.write();
    for (index_t i = 0; i < r; ++i)
      for (index_t j = 0; j < c; ++j) v(i, j) = at(i, j) = static_cast<word>(i * 1009 + j);
  }
  word& at(index_t i, index_t j) { return model[static_cast<std::size_t>(i * columns + j)]; }
  word taken(const box<2>& b) {
    word x = 1;
    for (index_t i = b.lo[0]; i < b.hi[0]; ++i)
      for (index_t j = b.lo[1]; j < b.hi[1]; ++j) x = told(x, at(i, j));
    return x;
  }
  void change_model(const box<2>& b, word by) {
    for (index_t i = b.lo[0]; i < b.hi[0]; ++i)
      for (index_t j = b.lo[1]; j < b.hi[1]; ++j) at(i, j) = told(at(i, j), ++by);
  }
  index_t rows, columns;
  array<word, 2> all;
  std::vector<word> model;
};

// "a" is the node where the tests spawn.
task_options on(const std::string& node) { return {.where = node == "a" ? scope::here() : scope::at(node)}; }
std::uint64_t bytes_out_of(const runtime& rt) {
  std::uint64_t n = 0;
  for (const auto& r : rt.nodes()) n += r.bytes_out;
  return n;
}
std::uint64_t bytes_into(const runtime& rt) {
  std::uint64_t n = 0;
  for (const auto& r : rt.nodes()) n += r.bytes_in;
  return n;
}

constexpr index_t side = 2048;  // a tile of 32 MiB: no link is so slow to answer that its boxes are not worth it
constexpr box<2> left{{3, 2}, {40, 20}}, right{{200, 480}, {260, 512}};

TEST(graph_boxes, another_node_gets_the_boxes_that_its_calls_read) {
  several_nodes n(1, 2, 1h);
  field f(n.a, side, side, side, side);
  auto results = n.a.filled({3}, tiles(1), word{0});
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(on("b"), take, read(f.all.sub(left)), write(results.sub({{0}, {1}})));
    r.spawn(on("b"), take, read(f.all.sub(right)), write(results.sub({{1}, {2}})));
    r.spawn(on("a"), take, read(f.all.sub(left)), write(results.sub({{2}, {3}})));
  });
  for (word run = 0; run < 4; ++run) {
    n.a.spawn(on("a"), change, update(f.all), run);
    f.change_model({{0, 0}, {side, side}}, run);
    n.a.wait_all();
    const std::uint64_t before = bytes_out_of(n.a);
    n.a.run(g).get();
    EXPECT_GT(bytes_out_of(n.a) - before, (37u * 18 + 60 * 32) * sizeof(word));
    EXPECT_LT(bytes_out_of(n.a) - before, 200'000u) << "a tile has 32 million bytes";
    const auto v = results.read();
    EXPECT_EQ(v(0), f.taken(left));
    EXPECT_EQ(v(1), f.taken(right));
    EXPECT_EQ(v(2), f.taken(left));
  }
  const std::uint64_t before = bytes_out_of(n.a);
  n.a.run(g).get();
  EXPECT_LT(bytes_out_of(n.a) - before, 20'000u) << "the boxes are there";
  EXPECT_EQ(results.read()(1), f.taken(right));
}

// Tiles that another node has written are read here: by the part of this node, and by a graph that is all of its own.
TEST(graph_boxes, boxes_come_home_for_a_run) {
  several_nodes n(1, 2, 1h);
  field f(n.a, side, side, side, side);
  auto results = n.a.filled({4}, tiles(1), word{0});
  const graph here = n.a.record([&](recorder& r) {
    r.spawn(take, read(f.all.sub(left)), write(results.sub({{0}, {1}})));
    r.spawn(take, read(f.all.sub(right)), write(results.sub({{1}, {2}})));
  });
  const graph over_both = n.a.record([&](recorder& r) {
    r.spawn(on("a"), take, read(f.all.sub(left)), write(results.sub({{2}, {3}})));
    r.spawn(on("a"), take, read(f.all.sub(right)), write(results.sub({{3}, {4}})));
    r.spawn(on("b"), take, read(f.all.sub(left)), write(results.sub({{0}, {1}})));
  });
  for (word run = 0; run < 3; ++run) {
    n.a.spawn(on("b"), change, update(f.all), run);
    f.change_model({{0, 0}, {side, side}}, run);
    n.a.wait_all();
    const std::uint64_t before = bytes_into(n.a);
    n.a.run(run == 1 ? here : over_both).get();
    n.a.run(run == 1 ? over_both : here).get();
    EXPECT_GT(bytes_into(n.a) - before, (37u * 18 + 60 * 32) * sizeof(word));
    EXPECT_LT(bytes_into(n.a) - before, 200'000u) << "a tile has 32 million bytes";
    const auto v = results.read();
    EXPECT_EQ(v(0), f.taken(left));
    EXPECT_EQ(v(1), f.taken(right));
    EXPECT_EQ(v(2), f.taken(left));
    EXPECT_EQ(v(3), f.taken(right));
  }
}

// One call reads elements that another one's box has, and others beside them: they come in several boxes.
TEST(graph_boxes, a_call_may_read_elements_of_several_boxes) {
  several_nodes n(1, 2, 1h);
  field f(n.a, side, side, side, side);
  auto results = n.a.filled({2}, tiles(1), word{0});
  constexpr box<2> flat{{10, 10}, {14, 90}}, upright{{8, 40}, {70, 44}};
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(take, read(f.all.sub(flat)), write(results.sub({{0}, {1}})));
    r.spawn(take, read(f.all.sub(upright)), write(results.sub({{1}, {2}})));
  });
  n.a.spawn(on("b"), change, update(f.all), word{5});
  f.change_model({{0, 0}, {side, side}}, 5);
  n.a.wait_all();
  const std::uint64_t before = bytes_into(n.a);
  n.a.run(g).get();
  EXPECT_LT(bytes_into(n.a) - before, 200'000u) << "a tile has 32 million bytes";
  const auto v = results.read();
  EXPECT_EQ(v(0), f.taken(flat));
  EXPECT_EQ(v(1), f.taken(upright));
}

TEST(graph_boxes, what_failed_beside_a_box_is_none_of_a_runs_business) {
  several_nodes n(1);
  field f(n.a, side, side, side, side);
  auto results = n.a.filled({2}, tiles(1), word{0});
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(on("a"), take, read(f.all.sub(left)), write(results.sub({{0}, {1}})));
    r.spawn(on("b"), take, read(f.all.sub(left)), write(results.sub({{1}, {2}})));
  });
  n.a.spawn(on("a"), spoil, write(f.all.sub(right)));
  n.a.run(g).get();
  EXPECT_EQ(results.read()(0), f.taken(left));
  EXPECT_EQ(results.read()(1), f.taken(left));
  n.a.spawn(on("a"), spoil, write(f.all.sub({{5, 5}, {6, 6}})));
  EXPECT_THROW(n.a.run(g).get(), error);
}

class graph_boxes_random : public testing::TestWithParam<unsigned> {};

// Boxes of a field, which this node or another one changes between runs, are read by calls of two or three nodes, and
// by a graph of one. Tiles are small, so that some are read whole and some in many boxes.
TEST_P(graph_boxes_random, runs_read_what_was_written_before_them) {
  std::mt19937 gen(GetParam());
  const auto less_than = [&](index_t n) { return static_cast<index_t>(gen() % static_cast<std::uint64_t>(n)); };
  const std::array<const char*, 3> names{"a", "b", "c"};
  several_nodes n(2);
  field f(n.a, 10 + less_than(60), 10 + less_than(60), 3 + less_than(30), 3 + less_than(30));
  const auto any_box = [&] {
    const index_t i = less_than(f.rows), j = less_than(f.columns);
    return box<2>{{i, j}, {i + 1 + less_than(f.rows - i), j + 1 + less_than(f.columns - j)}};
  };
  const auto calls = 1 + less_than(12);
  std::vector<box<2>> boxes;
  for (index_t i = 0; i < calls; ++i) boxes.push_back(any_box());
  auto results = n.a.filled({2 * calls}, tiles(1), word{0});
  const auto record = [&](bool stays_here) {
    return n.a.record([&](recorder& r) {
      for (index_t i = 0; i < calls; ++i) {
        const index_t to = stays_here ? i : calls + i;
        r.spawn(on(stays_here ? "a" : names[gen() % 3]), take, read(f.all.sub(boxes[static_cast<std::size_t>(i)])),
                write(results.sub({{to}, {to + 1}})));
      }
    });
  };
  const graph here = record(true), over_all = record(false);
  for (word run = 0; run < 6; ++run) {
    const box<2> changed = any_box();
    n.a.spawn(on(names[gen() % 3]), change, update(f.all.sub(changed)), run);
    f.change_model(changed, run);
    n.a.run(over_all);
    n.a.run(here);
    const auto v = results.read();
    for (index_t i = 0; i < calls; ++i) {
      ASSERT_EQ(v(i), f.taken(boxes[static_cast<std::size_t>(i)])) << i;
      ASSERT_EQ(v(calls + i), f.taken(boxes[static_cast<std::size_t>(i)])) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, graph_boxes_random, testing::Range(0u, 16u));

}  // namespace
