// What this file is for: recorded graphs whose calls run on several nodes: results, failures, lifetimes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Several runtimes in this process, each a node, joined over loopback sockets. "a" records and runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
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

constexpr word mixed(word x, word by) {
  x = (x ^ by) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 29);
}

// Each element becomes a function of itself and of the values one before and behind its counterpart in `from`; what is
// outside of that counts as zero. `shift`: from an element to its counterpart.
void lean_on(const word* from, index_t lo, index_t hi, word* to, index_t begin, index_t end, index_t shift, bool keep) {
  const auto at = [&](index_t i) { return i < lo || i >= hi ? 0 : from[i - lo]; };
  for (index_t i = begin; i < end; ++i) {
    word& x = to[i - begin];
    x = mixed(keep ? x : 5, at(i + shift - 1)) + mixed(at(i + shift), 3) + at(i + shift + 1);
  }
}
void lean_body(view<const word, 1> from, view<word, 1> to, index_t shift, bool keep) {
  if (to.lo(0) == to.hi(0)) return;
  lean_on(from.lo(0) == from.hi(0) ? nullptr : &from(from.lo(0)), from.lo(0), from.hi(0), &to(to.lo(0)), to.lo(0),
          to.hi(0), shift, keep);
}
constexpr auto lean =
    kernel<in<word, 1>, out<word, 1>, index_t>("span.lean")
        .on(cpu, [](view<const word, 1> from, view<word, 1> to, index_t shift) { lean_body(from, to, shift, false); });
constexpr auto blend =
    kernel<in<word, 1>, inout<word, 1>, index_t>("span.blend")
        .on(cpu, [](view<const word, 1> from, view<word, 1> to, index_t shift) { lean_body(from, to, shift, true); });
constexpr auto add = kernel<inout<word, 1>, word>("span.add").on(cpu, [](view<word, 1> a, word n) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += n;
});
std::atomic<int> refused_at{-1};  // calls until `fragile` throws
constexpr auto fragile = kernel<inout<word, 1>>("span.fragile").on(cpu, [](view<word, 1> a) {
  if (refused_at.fetch_sub(1) == 0) throw std::runtime_error("it broke");
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += 1;
});
std::atomic<bool> may_go{true}, has_come{false};
constexpr auto hold = kernel<inout<word, 1>>("span.hold").on(cpu, [](task_context& c, view<word, 1> a) {
  has_come = true;
  has_come.notify_all();
  while (!may_go && !c.stop_requested()) std::this_thread::yield();
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += 1;
});
std::atomic<bool> has_begun{false};
constexpr auto tell = kernel<inout<word, 1>>("span.tell").on(cpu, [](view<word, 1>) {
  has_begun = true;
  has_begun.notify_all();
});
constexpr auto total =
    kernel<in<word, 1>, red<word, 1>>("span.total").on(cpu, [](view<const word, 1> a, view<word, 1> t) {
      for (index_t i = a.lo(0); i < a.hi(0); ++i) t(0) += a(i);
    });
constexpr auto unknown = kernel<inout<word, 1>>("span.not_offered").on(cpu, [](view<word, 1>) {});
const offer offered{lean, blend, add, fragile, hold, tell, total};

task_options at(const std::string& node) { return {.where = node == "a" ? scope::here() : scope::at(node)}; }

std::vector<word> contents(const array<word, 1>& a) {
  const auto v = a.read();
  std::vector<word> all;
  for (index_t i = v.lo(0); i < v.hi(0); ++i) all.push_back(v(i));
  return all;
}

template <class F>
errc code_of(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  }
  return errc{};
}
template <class F>
std::string text_of(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

/// A line of tiles, two halves on two nodes, and steps that lean on both neighbours.
struct line_of_tiles {
  line_of_tiles(runtime& rt, index_t tile, index_t count, std::vector<std::string> nodes)
      : one(rt.filled({tile * count}, tiles(tile), word{7})), two(rt.filled({tile * count}, tiles(tile), word{9})) {
    model.assign(static_cast<std::size_t>(tile * count), 7);
    steps = [this, tile, count, nodes = std::move(nodes)](recorder& r, int n) {
      for (int s = 0; s < 2 * n; ++s) {
        auto &from = s % 2 == 0 ? one : two, &to = s % 2 == 0 ? two : one;
        for (index_t t = 0; t < count; ++t) {
          const index_t lo = std::max<index_t>(0, t * tile - 1), hi = std::min(tile * count, (t + 1) * tile + 1);
          const auto& node = nodes[static_cast<std::size_t>(t * static_cast<index_t>(nodes.size()) / count)];
          r.spawn(at(node), lean, read(from.sub({{lo}, {hi}})), write(to.sub({{t * tile}, {(t + 1) * tile}})),
                  t * tile - lo);
        }
      }
    };
    model_step = [this, tile, count] {
      std::vector<word> next(model.size());
      for (index_t t = 0; t < count; ++t) {
        const index_t lo = std::max<index_t>(0, t * tile - 1), hi = std::min(tile * count, (t + 1) * tile + 1);
        lean_on(&model[static_cast<std::size_t>(lo)], 0, hi - lo, &next[static_cast<std::size_t>(t * tile)], 0, tile,
                t * tile - lo, false);
      }
      model.swap(next);
    };
  }
  array<word, 1> one, two;
  std::vector<word> model;
  std::function<void(recorder&, int)> steps;  // so many double steps
  std::function<void()> model_step;
};

TEST(graphs_over_nodes, a_stencil_over_two_nodes_equals_a_serial_run) {
  several_nodes n(1);
  line_of_tiles line(n.a, 64, 6, {"a", "b"});
  const graph g = n.a.record([&](recorder& r) { line.steps(r, 5); });
  EXPECT_EQ(g.size(), 60u);
  EXPECT_GT(g.edges(), 100u);
  for (int run = 0; run < 20; ++run) {
    n.a.run(g).get();
    for (int s = 0; s < 10; ++s) line.model_step();
    if (run % 5 == 4) {
      EXPECT_EQ(contents(line.one), line.model) << "after run " << run;
    }
  }
  EXPECT_GE(test::tasks_of(n.a, "b"), 20u);
}

TEST(graphs_over_nodes, runs_follow_each_other_without_a_wait) {
  several_nodes n(2);
  line_of_tiles line(n.a, 16, 9, {"a", "b", "c"});
  const graph g = n.a.record([&](recorder& r) { line.steps(r, 1); });
  future<void> last;
  for (int run = 0; run < 100; ++run) {
    last = n.a.run(g);
    line.model_step();
    line.model_step();
  }
  last.get();
  EXPECT_EQ(contents(line.one), line.model);
}

TEST(graphs_over_nodes, none_of_the_calls_need_be_here) {
  several_nodes n(2);
  line_of_tiles line(n.a, 16, 4, {"b", "c"});
  const graph g = n.a.record([&](recorder& r) { line.steps(r, 3); });
  for (int run = 0; run < 3; ++run) n.a.run(g).get();
  for (int s = 0; s < 18; ++s) line.model_step();
  EXPECT_EQ(contents(line.one), line.model);
}

TEST(graphs_over_nodes, boxes_of_a_mebibyte_cross) {
  several_nodes n(1);
  constexpr index_t tile = 1 << 18;
  auto x = n.a.filled({tile}, tiles(tile), word{1}), y = n.a.filled({tile}, tiles(tile), word{2});
  const graph g = n.a.record([&](recorder& r) {
    for (int i = 0; i < 3; ++i) {
      r.spawn(at("a"), blend, read(y), update(x), index_t{0});
      r.spawn(at("b"), blend, read(x), update(y), index_t{0});
    }
  });
  std::vector<word> mx(tile, 1), my(tile, 2);
  for (int run = 0; run < 3; ++run) {
    n.a.run(g).get();
    for (int i = 0; i < 3; ++i) {
      lean_on(my.data(), 0, tile, mx.data(), 0, tile, 0, true);
      lean_on(mx.data(), 0, tile, my.data(), 0, tile, 0, true);
    }
  }
  EXPECT_EQ(contents(x), mx);
  EXPECT_EQ(contents(y), my);
}

// Programs drawn at random: arrays and tiles of odd sizes, boxes over several tiles, calls anywhere.
class random_programs : public testing::TestWithParam<unsigned> {};

TEST_P(random_programs, equal_a_serial_run) {
  std::mt19937 draw(GetParam());
  const auto up_to = [&](index_t n) { return std::uniform_int_distribution<index_t>(0, n)(draw); };
  static several_nodes* const n = new several_nodes(2);  // of all these programs
  const std::vector<std::string> nodes{"a", "b", "c"};
  std::vector<array<word, 1>> arrays;
  std::vector<std::vector<word>> models;
  for (int i = 0; i < 4; ++i) {
    const index_t size = 1 + up_to(80), tile = 1 + up_to(size - 1);
    arrays.push_back(n->a.filled({size}, tiles(tile), static_cast<word>(i)));
    models.emplace_back(static_cast<std::size_t>(size), static_cast<word>(i));
  }
  struct call {
    bool keeps;
    std::size_t from, to;
    index_t from_lo, from_hi, lo, hi, shift;
    std::string node;
  };
  std::vector<call> program;
  for (index_t i = 5 + up_to(60); i != 0; --i) {
    call c;
    c.keeps = up_to(1) == 0;
    c.from = static_cast<std::size_t>(up_to(3));
    do c.to = static_cast<std::size_t>(up_to(3));
    while (c.to == c.from);
    const auto size = [&](std::size_t a) { return static_cast<index_t>(models[a].size()); };
    c.from_lo = up_to(size(c.from) - 1);
    c.from_hi = c.from_lo + 1 + up_to(size(c.from) - c.from_lo - 1);
    c.lo = up_to(size(c.to) - 1);
    c.hi = c.lo + 1 + up_to(size(c.to) - c.lo - 1);
    c.shift = up_to(4) - 2;
    c.node = up_to(3) == 0 ? "" : nodes[static_cast<std::size_t>(up_to(2))];
    program.push_back(c);
  }
  program.push_back({true, 0, 1, 0, 1, 0, 1, 0, "b"});
  const graph g = n->a.record([&](recorder& r) {
    for (const call& c : program) {
      const task_options where = c.node.empty() ? task_options{} : at(c.node);
      const auto from = arrays[c.from].sub({{c.from_lo}, {c.from_hi}}), to = arrays[c.to].sub({{c.lo}, {c.hi}});
      if (c.keeps)
        r.spawn(where, blend, read(from), update(to), c.shift);
      else
        r.spawn(where, lean, read(from), write(to), c.shift);
    }
  });
  for (int run = 0; run < 4; ++run) {
    const future<void> done = n->a.run(g);
    if (run % 2 == 1) done.get();
    for (const call& c : program)
      lean_on(&models[c.from][static_cast<std::size_t>(c.from_lo)], 0, c.from_hi - c.from_lo,
              &models[c.to][static_cast<std::size_t>(c.lo)], 0, c.hi - c.lo, c.shift, c.keeps);
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) EXPECT_EQ(contents(arrays[i]), models[i]) << "array " << i;
}
INSTANTIATE_TEST_SUITE_P(seeds, random_programs, testing::Range(0u, 40u));

TEST(graphs_over_nodes, tasks_around_a_run_keep_program_order) {
  several_nodes n(1);
  auto x = n.a.filled({8}, tiles(4), word{0});
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(at("a"), add, update(x.sub({{0}, {4}})), word{1});
    r.spawn(at("b"), add, update(x.sub({{4}, {8}})), word{1});
    r.spawn(at("b"), blend, read(x.sub({{0}, {4}})), update(x.sub({{4}, {8}})), index_t{0});
  });
  std::vector<word> model(8, 0);
  for (int i = 0; i < 30; ++i) {
    n.a.run(g);
    n.a.spawn(add, update(x), word{3});
    for (std::size_t k = 0; k < 8; ++k) model[k] += 1;
    lean_on(model.data(), 0, 4, model.data() + 4, 0, 4, 0, true);
    for (std::size_t k = 0; k < 8; ++k) model[k] += 3;
  }
  EXPECT_EQ(contents(x), model);
}

// Between the parts of one run no other thread's task comes: it would wait for one part, and another part for it.
TEST(graphs_over_nodes, threads_that_submit_beside_runs_do_not_get_between_their_parts) {
  several_nodes n(1);
  auto x = n.a.filled({4}, tiles(2), word{0});
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(at("a"), add, update(x.sub({{0}, {2}})), word{1});
    r.spawn(at("b"), blend, read(x.sub({{0}, {2}})), update(x.sub({{2}, {4}})), index_t{0});
    r.spawn(at("a"), blend, read(x.sub({{2}, {4}})), update(x.sub({{0}, {2}})), index_t{0});
  });
  std::atomic<bool> over{false};
  std::atomic<int> added{0};
  std::thread other([&] {
    while (!over) {
      n.a.spawn(add, update(x), word{0}).get();
      ++added;
    }
  });
  for (int i = 0; i < 100; ++i) n.a.run(g).get();
  over = true;
  other.join();
  std::vector<word> m(4, 0);
  for (int i = 0; i < 100; ++i) {
    m[0] += 1, m[1] += 1;
    lean_on(m.data(), 0, 2, m.data() + 2, 0, 2, 0, true);
    lean_on(m.data() + 2, 0, 2, m.data(), 0, 2, 0, true);
  }
  EXPECT_EQ(contents(x), m);
  EXPECT_GT(added.load(), 0);
}

TEST(graphs_over_nodes, a_for_each_runs_where_its_scope_says_and_is_awaited_by_later_calls) {
  several_nodes n(1);
  auto x = n.a.filled({40}, tiles(10), word{0}), y = n.a.filled({10}, tiles(10), word{0});
  const graph g = n.a.record([&](recorder& r) {
    const auto all = r.for_each(at("b"), grid(40).chunks(10), add, update(x), word{2});
    r.spawn(at("a"), add, update(y), word{1});
    r.spawn(at("a"), blend, read(x.sub({{30}, {40}})), update(y), index_t{0});
    (void)all;
  });
  n.a.run(g).get();
  n.a.run(g).get();
  EXPECT_EQ(contents(x), std::vector<word>(40, 4));
  std::vector<word> my(10, 0);
  for (const word v : {2, 4}) {
    for (word& w : my) w += 1;
    const std::vector<word> mx(10, v);
    lean_on(mx.data(), 0, 10, my.data(), 0, 10, 0, true);
  }
  EXPECT_EQ(contents(y), my);
}

TEST(graphs_over_nodes, tiles_that_are_written_in_parts_need_not_be_whole) {
  several_nodes n(1);
  auto x = n.a.array<word, 1>({10}, tiles(10)), y = n.a.filled({10}, tiles(10), word{0});
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(at("a"), lean, read(y.sub({{0}, {3}})), write(x.sub({{0}, {3}})), index_t{0});
    r.spawn(at("b"), blend, read(x.sub({{0}, {3}})), update(y.sub({{0}, {3}})), index_t{0});
  });
  n.a.run(g).get();
  word mx[3], my[3] = {0, 0, 0};
  lean_on(my, 0, 3, mx, 0, 3, 0, false);
  lean_on(mx, 0, 3, my, 0, 3, 0, true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(contents(y)[static_cast<std::size_t>(i)], my[i]);
  // What is read and was never written still fails.
  auto z = n.a.array<word, 1>({10}, tiles(10));
  const graph bad = n.a.record([&](recorder& r) {
    r.spawn(at("a"), lean, read(y.sub({{0}, {3}})), write(z.sub({{0}, {3}})), index_t{0});
    r.spawn(at("b"), blend, read(z.sub({{2}, {5}})), update(y.sub({{0}, {3}})), index_t{0});
  });
  EXPECT_EQ(code_of([&] { n.a.run(bad).get(); }), errc::uninitialized_read);
}

// The part there reads another row of a tile of which a task before the run writes one here. That task waits for a
// node, this part waits for the one here, and that one waits for the task.
TEST(graphs_over_nodes, a_part_keeps_nobody_from_writing_what_it_does_not_read) {
  several_nodes n(1);
  auto x = n.a.filled({8}, tiles(8), word{1}), y = n.a.filled({16}, tiles(8), word{2});
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(at("a"), lean, read(y), write(x), index_t{0});
    r.spawn(at("b"), blend, read(y.sub({{15}, {16}})), update(x.sub({{0}, {1}})), index_t{0});
  });
  may_go = false;
  n.a.spawn(at("b"), hold, update(y.sub({{0}, {8}})));  // all of a tile: it is there then
  // Parts of both tiles.
  const auto put = n.a.spawn(at("a"), add, update(y.sub({{4}, {12}})), word{5});
  const auto run = n.a.run(g);
  may_go = true;
  ASSERT_TRUE(run.wait_for(20s)) << "the run and the task wait for each other";
  run.get();
  std::vector<word> my(16, 2), mx(8);
  for (std::size_t i = 0; i < 8; ++i) my[i] += 1;
  for (std::size_t i = 4; i < 12; ++i) my[i] += 5;
  lean_on(my.data(), 0, 16, mx.data(), 0, 8, 0, false);
  lean_on(&my[15], 0, 1, mx.data(), 0, 1, 0, true);
  EXPECT_EQ(contents(x), mx);
  EXPECT_EQ(contents(y), my);
}

// A task before the run reads more of a tile on a node than the part there, and comes to the node after it could.
TEST(graphs_over_nodes, a_part_does_not_begin_before_what_another_part_waits_for) {
  several_nodes n(1);
  auto x = n.a.filled({8}, tiles(8), word{1}), y = n.a.filled({16}, tiles(8), word{2});
  auto w = n.a.filled({8}, tiles(8), word{3}), v = n.a.filled({8}, tiles(8), word{4});
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(at("a"), lean, read(w), write(x), index_t{0});
    r.spawn(at("b"), blend, read(y.sub({{15}, {16}})), update(x.sub({{0}, {1}})), index_t{0});
  });
  may_go = false;
  n.a.spawn(at("a"), hold, update(w));
  n.a.spawn(at("b"), lean, read(y.sub({{10}, {16}})), write(w), index_t{0});
  const auto run = n.a.run(g);
  n.a.spawn(at("b"), add, update(v), word{1}).get();  // what was sent before is there
  may_go = true;
  ASSERT_TRUE(run.wait_for(20s)) << "the run and the task wait for each other";
  run.get();
  const std::vector<word> my(16, 2);
  std::vector<word> mw(8), mx(8);
  lean_on(&my[10], 0, 6, mw.data(), 0, 8, 0, false);
  lean_on(mw.data(), 0, 8, mx.data(), 0, 8, 0, false);
  lean_on(&my[15], 0, 1, mx.data(), 0, 1, 0, true);
  EXPECT_EQ(contents(w), mw);
  EXPECT_EQ(contents(x), mx);
}

// Each part holds a quantity of its node: of two runs that share nothing else each might have one that the other wants.
TEST(graphs_over_nodes, runs_get_their_quantities_in_one_order) {
  options o = test::node_options("a");
  o.resources = {{"license", 1}};
  runtime a(o);
  o = test::node_options("b", a.addresses());
  o.resources = {{"license", 1}};
  const runtime b(o);
  ASSERT_TRUE(a.wait_for_nodes(1, 20s));
  constexpr int runs = 60;
  std::vector<array<word, 1>> all;
  std::vector<graph> graphs;
  for (int i = 0; i < 3; ++i) {
    all.push_back(a.filled({8}, tiles(4), word{0}));
    const auto here = all.back().sub({{0}, {4}}), there = all.back().sub({{4}, {8}});
    graphs.push_back(a.record([&](recorder& r) {
      r.spawn(at("a"), add, update(here), word{1});
      r.spawn(at("b"), blend, read(here), update(there), index_t{0});
      r.spawn(at("a"), blend, read(there), update(here), index_t{0});
    }));
  }
  std::vector<std::thread> threads;
  std::atomic<int> ended{0};
  for (const graph& g : graphs)
    threads.emplace_back([&] {
      std::vector<future<void>> mine;
      for (int i = 0; i < runs; ++i) mine.push_back(a.run({.resources = {{"license", 1}}}, g));
      for (const auto& f : mine)
        if (f.wait_for(20s)) ++ended;
    });
  for (std::thread& t : threads) t.join();
  ASSERT_EQ(ended, 3 * runs);
  std::vector<word> here(4), there(4);
  for (int i = 0; i < runs; ++i) {
    for (word& x : here) ++x;
    lean_on(here.data(), 0, 4, there.data(), 0, 4, 0, true);
    lean_on(there.data(), 0, 4, here.data(), 0, 4, 0, true);
  }
  here.insert(here.end(), there.begin(), there.end());
  for (const auto& x : all) EXPECT_EQ(contents(x), here);
}

TEST(graphs_over_nodes, calls_may_see_nothing_of_an_array) {
  several_nodes n(1);
  auto x = n.a.filled({4}, tiles(2), word{0}), none = n.a.filled({4}, tiles(4), word{0});
  const auto nothing = [](const box<1>&, const extent<1>&) { return box<1>{{0}, {0}}; };
  const graph g = n.a.record([&](recorder& r) {
    r.for_each(at("b"), grid(2).chunks(2), blend, read(none, nothing), update(x.sub({{0}, {2}})), index_t{0});
    r.for_each(at("a"), grid(2).chunks(2), blend, read(none, nothing), update(x.sub({{2}, {4}})), index_t{0});
  });
  n.a.run(g).get();
  std::vector<word> m(4, 0);
  lean_on(nullptr, 0, 0, m.data(), 0, 2, 0, true);
  lean_on(nullptr, 0, 0, m.data() + 2, 0, 2, 0, true);
  EXPECT_EQ(contents(x), m);
}

TEST(graphs_over_nodes, large_boxes_cross_between_nodes_that_have_just_met) {
  for (int round = 0; round < 5; ++round) {
    runtime a(test::node_options("a"));
    runtime b(test::node_options("b", a.addresses())), c(test::node_options("c", a.addresses()));
    ASSERT_TRUE(a.wait_for_nodes(2, 20s));
    constexpr index_t size = 50'000;
    auto x = a.filled({size}, tiles(size), word{1}), y = a.filled({size}, tiles(size), word{0});
    const graph g = a.record([&](recorder& r) {
      r.spawn(at("b"), add, update(x), word{1});
      r.spawn(at("c"), lean, read(x), write(y), index_t{0});
    });
    const auto done = a.run(g);
    ASSERT_TRUE(done.wait_for(20s));
    std::vector<word> mx(size, 2), my(size);
    lean_on(mx.data(), 0, size, my.data(), 0, size, 0, false);
    EXPECT_EQ(contents(y), my);
  }
}

// ---- failures -------------------------------------------------------------------------------------------------------

TEST(graphs_over_nodes, a_call_that_throws_on_another_node_fails_the_run_and_names_itself) {
  several_nodes n(1);
  auto x = n.a.filled({4}, tiles(4), word{0}), y = n.a.filled({4}, tiles(4), word{0}),
       z = n.a.filled({4}, tiles(4), word{0});
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(at("b"), fragile, update(x));
    r.spawn(at("a"), blend, read(x), update(y), index_t{0});
    r.spawn(at("b"), add, update(z), word{1});
  });
  refused_at = 0;
  const std::string text = text_of([&] { n.a.run(g).get(); });
  EXPECT_NE(text.find("it broke"), std::string::npos) << text;
  EXPECT_NE(text.find("'span.fragile' of 'graph run'"), std::string::npos) << text;
  EXPECT_NE(text.find(" on b"), std::string::npos) << text;
  EXPECT_THROW(contents(x), error);
  EXPECT_THROW(contents(y), error);
  // What has failed is written anew, and the graph runs again.
  for (auto* a : {&x, &y, &z}) {
    const auto v = a->write();
    for (index_t i = 0; i < 4; ++i) v(i) = 0;
  }
  refused_at = -1;
  n.a.run(g).get();
  EXPECT_EQ(contents(x), std::vector<word>(4, 1));
  EXPECT_EQ(contents(z), std::vector<word>(4, 1));
}

TEST(graphs_over_nodes, a_run_whose_input_has_failed_ends_in_all_parts) {
  several_nodes n(1);
  auto x = n.a.filled({4}, tiles(4), word{0}), y = n.a.filled({4}, tiles(4), word{0});
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(at("b"), blend, read(x), update(y), index_t{0});
    r.spawn(at("a"), add, update(x), word{1});
    r.spawn(at("b"), blend, read(x), update(y), index_t{0});
    r.spawn(at("a"), blend, read(y), update(x), index_t{0});
  });
  n.a.spawn(
      {.name = "source"}, [](view<word, 1>) { throw std::runtime_error("no source"); }, update(x));
  EXPECT_EQ(code_of([&] { n.a.run(g).get(); }), errc::dependency_failed);
  for (auto* a : {&x, &y}) {
    const auto v = a->write();
    for (index_t i = 0; i < 4; ++i) v(i) = 0;
  }
  n.a.run(g).get();
  EXPECT_NE(contents(y)[0], 0u);
}

TEST(graphs_over_nodes, a_run_that_is_cancelled_before_it_begins_ends_in_all_parts) {
  several_nodes n(1);
  auto x = n.a.filled({4}, tiles(4), word{0}), y = n.a.filled({4}, tiles(4), word{0});
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(at("a"), add, update(x), word{1});
    r.spawn(at("b"), blend, read(x), update(y), index_t{0});
    r.spawn(at("a"), blend, read(y), update(x), index_t{0});
  });
  may_go = has_come = false;
  n.a.spawn(at("a"), hold, update(x));
  has_come.wait(false);
  std::stop_source stop;
  const auto done = n.a.run({.stop = stop.get_token()}, g);
  stop.request_stop();
  may_go = true;
  const errc how = code_of([&] { done.get(); });
  EXPECT_TRUE(how == errc::cancelled || how == errc::dependency_failed) << static_cast<int>(how);
}

TEST(graphs_over_nodes, a_node_that_dies_in_a_run_fails_it_and_later_ones) {
  several_nodes n(2);
  auto x = n.a.filled({4}, tiles(4), word{0}), y = n.a.filled({4}, tiles(4), word{0}),
       z = n.a.filled({4}, tiles(4), word{0});
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(at("b"), hold, update(x));
    r.spawn(at("c"), blend, read(x), update(y), index_t{0});
    r.spawn(at("a"), blend, read(y), update(z), index_t{0});
  });
  may_go = has_come = false;
  const auto done = n.a.run(g);
  has_come.wait(false);
  std::thread ends([&] { n.rest[0]->shutdown(0s); });
  const errc how = code_of([&] { done.get(); });
  may_go = true;
  ends.join();
  n.rest[0].reset();
  EXPECT_NE(how, errc{});
  EXPECT_NE(code_of([&] { n.a.run(g).get(); }), errc{});
  // The others go on without it.
  const graph rest = n.a.record([&](recorder& r) {
    r.spawn(at("c"), add, update(y), word{1});
    r.spawn(at("a"), blend, read(y), update(z), index_t{0});
  });
  for (auto* a : {&y, &z}) {
    const auto v = a->write();
    for (index_t i = 0; i < 4; ++i) v(i) = 0;
  }
  n.a.run(rest).get();
  EXPECT_EQ(contents(y), std::vector<word>(4, 1));
}

// What it has begun waits for another part, which comes after a part that it has not begun.
// It has begun a part of a run that waits for one here, which waits for a run before it.
TEST(graphs_over_nodes, a_node_that_leaves_ends_what_it_has_been_given_and_no_more) {
  several_nodes n(1);
  auto x = n.a.filled({4}, tiles(4), word{0}), y = n.a.filled({4}, tiles(4), word{0}),
       z = n.a.filled({4}, tiles(4), word{0}), u = n.a.filled({4}, tiles(4), word{0}),
       v = n.a.filled({4}, tiles(4), word{0});
  const graph zero = n.a.record([&](recorder& r) { r.spawn(at("b"), hold, update(x)); });
  const graph one = n.a.record([&](recorder& r) {
    r.spawn(at("b"), add, update(x), word{1});
    r.spawn(at("a"), blend, read(x), update(y), index_t{0});
  });
  const graph two = n.a.record([&](recorder& r) {
    r.spawn(at("b"), tell, update(u));
    r.spawn(at("a"), blend, read(y), update(z), index_t{0});
    r.spawn(at("b"), blend, read(z), update(u), index_t{0});
  });
  const graph later = n.a.record([&](recorder& r) { r.spawn(at("b"), add, update(v), word{1}); });
  may_go = has_come = has_begun = false;
  const auto begun = n.a.run(zero);
  has_come.wait(false);
  const auto first = n.a.run(one);
  const auto second = n.a.run(two);
  has_begun.wait(false);
  n.a.spawn(at("a"), blend, read(z), update(v), index_t{0});
  const auto last = n.a.run(later);
  bool complete = false;
  std::thread leaves([&] { complete = n.b().shutdown(20s).complete; });
  EXPECT_TRUE(test::comes_true([&] {
    const auto all = n.a.query_cluster(1s).members;
    return std::ranges::any_of(all, [](const auto& m) { return m.name == "b" && m.state == member_state::leaving; });
  }));
  may_go = true;
  leaves.join();
  EXPECT_TRUE(complete) << "it has waited for its limit";
  for (const auto* f : {&begun, &first, &second}) f->get();
  const std::string why = text_of([&] { last.get(); });
  EXPECT_NE(why.find("b, which is to run this part of the graph, is leaving"), std::string::npos) << why;
  EXPECT_EQ(why.find("of 'graph run'"), std::string::npos) << why;
  EXPECT_EQ(code_of([&] { (void)v.read(); }), errc::dependency_failed);
  std::vector<word> mx(4, 2), my(4), mz(4), mu(4, 0);
  lean_on(mx.data(), 0, 4, my.data(), 0, 4, 0, true);
  lean_on(my.data(), 0, 4, mz.data(), 0, 4, 0, true);
  lean_on(mz.data(), 0, 4, mu.data(), 0, 4, 0, true);
  EXPECT_EQ(contents(u), mu);
}

// The parts on the other node come after a run on this node's cores, all of which have a run that waits for them.
TEST(graphs_over_nodes, runs_that_wait_for_other_parts_leave_the_cores_to_what_these_wait_for) {
  options o = test::node_options("a");
  o.core_groups = 2;
  runtime a(o), b(test::node_options("b", a.addresses()));
  ASSERT_TRUE(a.wait_for_nodes(1, 20s));
  const auto shared = a.filled({4}, tiles(4), word{1});
  const auto other = a.filled({4}, tiles(4), word{0});
  const graph begins = a.record([&](recorder& r) { r.spawn(at("b"), hold, update(shared)); });
  const graph goes_on = a.record([&](recorder& r) {
    r.spawn(at("a"), add, update(shared), word{1});
    r.spawn(at("b"), add, update(other), word{1});
  });
  struct pair_of_parts {
    array<word, 1> there, here, told;
    graph g;
  };
  std::vector<pair_of_parts> all(2);
  for (pair_of_parts& p : all) {
    for (auto* const x : {&p.there, &p.here, &p.told}) *x = a.filled({4}, tiles(4), word{0});
    p.g = a.record([&](recorder& r) {
      r.spawn(at("a"), tell, update(p.told));
      r.spawn(at("b"), lean, read(shared), write(p.there), index_t{0});
      r.spawn(at("a"), lean, read(p.there), write(p.here), index_t{0});
    });
  }
  // The first time shows how long runs take: a core that has one is then given nothing beside it.
  for (int time = 0; time < 2; ++time) {
    has_come = may_go = false;
    std::vector<future<void>> runs;
    runs.push_back(a.run(begins));
    runs.push_back(a.run(goes_on));
    for (pair_of_parts& p : all) {
      has_begun = false;
      runs.push_back(a.run(p.g));
      has_begun.wait(false);
    }
    const auto until = std::chrono::steady_clock::now() + 20ms;
    while (std::chrono::steady_clock::now() < until) continue;
    may_go = true;
    for (const auto& f : runs) ASSERT_TRUE(f.wait_for(20s)) << "it waits for a core that waits for it";
  }
  EXPECT_EQ(contents(shared), std::vector<word>(4, 5));
  EXPECT_EQ(contents(all[0].here), contents(all[1].here));
}

TEST(graphs_over_nodes, the_owner_may_end_while_a_run_waits_for_another_node) {
  may_go = has_come = false;
  auto n = std::make_unique<several_nodes>(1);
  {
    auto x = n->a.filled({4}, tiles(4), word{0}), y = n->a.filled({4}, tiles(4), word{0});
    const graph g = n->a.record([&](recorder& r) {
      r.spawn(at("b"), hold, update(x));
      r.spawn(at("a"), blend, read(x), update(y), index_t{0});
    });
    const auto done = n->a.run(g);
    has_come.wait(false);
    n->a.shutdown(0s);
    EXPECT_NE(code_of([&] { done.get(); }), errc{});
  }
  may_go = true;
  n.reset();
}

TEST(graphs_over_nodes, the_stop_token_of_a_run_is_seen_on_other_nodes) {
  several_nodes n(1);
  auto x = n.a.filled({4}, tiles(4), word{0});
  const graph g = n.a.record([&](recorder& r) { r.spawn(at("b"), hold, update(x)); });
  may_go = has_come = false;
  std::stop_source stop;
  const auto done = n.a.run({.stop = stop.get_token()}, g);
  has_come.wait(false);
  stop.request_stop();
  done.get();  // the body has seen it, and ended as it likes
  may_go = true;
  EXPECT_EQ(contents(x), std::vector<word>(4, 1));
}

// ---- what is refused ------------------------------------------------------------------------------------------------

TEST(graphs_over_nodes, what_cannot_be_split_is_refused_when_it_is_recorded) {
  several_nodes n(1);
  auto x = n.a.filled({4}, tiles(4), word{0});
  const auto record_one = [&](auto&& f) {
    return text_of([&] {
      n.a.record([&](recorder& r) {
        r.spawn(at("b"), add, update(x), word{1});
        f(r);
      });
    });
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(record_one([&](recorder& r) { r.spawn(at("b"), unknown, update(x)); }), "does not offer it");
  has(record_one([&](recorder& r) {
        r.spawn(
            at("b"), [](view<word, 1>) {}, update(x));
      }),
      "kernel");
  has(record_one([&](recorder& r) {
        const auto seven = r.spawn([] { return word{7}; });
        r.spawn(at("b"), add, update(x), seven);
      }),
      "value");
  std::vector<word> mine(4, 0);
  auto lent = n.a.borrow(std::span(mine), {4}, tiles(4));
  has(record_one([&](recorder& r) {
        r.spawn(at("b"), add, update(lent), word{1});
        r.spawn(at("a"), blend, read(lent), update(x), index_t{0});
      }),
      "memory of the caller's");
  // The run's scope.
  const graph g = n.a.record([&](recorder& r) { r.spawn(at("b"), add, update(x), word{1}); });
  EXPECT_EQ(code_of([&] { n.a.run({.where = scope::here()}, g); }), errc::no_executor);
  n.a.run(g).get();
  EXPECT_EQ(contents(x), std::vector<word>(4, 1));
}

TEST(graphs_over_nodes, a_graph_that_is_gone_leaves_nothing_on_its_nodes) {
  several_nodes n(1);
  {
    line_of_tiles line(n.a, 64, 4, {"a", "b"});
    graph g = n.a.record([&](recorder& r) { line.steps(r, 2); });
    const auto done = n.a.run(g);
    g = {};  // the run goes on
    done.get();
    for (int s = 0; s < 4; ++s) line.model_step();
    EXPECT_EQ(contents(line.one), line.model);
  }
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (n.b().report().arrays != 0 && std::chrono::steady_clock::now() < deadline)
    n.b().wait_for_nodes(1000, 1ms);  // which never are there
  EXPECT_EQ(n.b().report().arrays, 0u);
  EXPECT_EQ(n.b().report().bytes_allocated, 0u);
}

// ---- what travels ---------------------------------------------------------------------------------------------------

TEST(graphs_over_nodes, halos_cross_and_no_tiles) {
  several_nodes n(1, 2, 1h);         // no tile is saved here because making it again would take too long
  constexpr index_t tile = 1 << 16;  // 512 KiB
  line_of_tiles line(n.a, tile, 4, {"a", "b"});
  const graph g = n.a.record([&](recorder& r) { line.steps(r, 10); });
  n.a.run(g).get();
  const std::uint64_t before = test::bytes_of(n.a);
  for (int run = 0; run < 5; ++run) n.a.run(g).get();
  // 100 steps with a halo of 8 bytes each way; the rest are the messages around them.
  EXPECT_LT(test::bytes_of(n.a) - before, 100'000u);
  for (int s = 0; s < 120; ++s) line.model_step();
  EXPECT_EQ(contents(line.one), line.model);
}

}  // namespace
