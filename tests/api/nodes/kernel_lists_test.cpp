// What this file is for: kernels with lists of arrays and of values on other nodes: calls, repetitions, graphs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Several runtimes in this process, each a node, joined over loopback sockets. "a" spawns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "nodes_apart.hpp"
#include "several_nodes.hpp"
#include "tests/api/gates.hpp"

namespace {

using namespace troupe;
using test::several_nodes;
using troupe::index_t;
using word = std::uint64_t;

// "a" is the node that asks.
task_options on(const std::string& node) { return {.where = node == "a" ? scope::here() : scope::at(node)}; }

constexpr word mixed(word x, word by) {
  x = (x ^ by) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 29);
}

// What a call makes of what it is given: the same for all lengths of its lists, here and in the test's own model.
word digest_of(std::span<const std::vector<word>> first, std::span<const word> values,
               std::span<const std::vector<word>> second, word salt) {
  word h = salt;
  for (const auto& a : first)
    for (const word x : a) h = mixed(h, x);
  h = mixed(h, first.size());
  for (const word v : values) h = mixed(h, v);
  h = mixed(h, values.size());
  for (const auto& a : second)
    for (const word x : a) h = mixed(h, x + 1);
  return mixed(h, second.size());
}
template <class T>
std::vector<std::vector<word>> elements_of(std::span<const view<T, 1>> list) {
  std::vector<std::vector<word>> all;
  for (const auto& v : list) all.emplace_back(v.data(), v.data() + v.size(0));
  return all;
}
void fill(word* to, index_t n, word h) {
  for (index_t i = 0; i < n; ++i) to[i] = mixed(h, static_cast<word>(i));
}

inline constexpr auto make = kernel<out<word, 1>, word>("node_lists.make").on(cpu, [](view<word, 1> v, word salt) {
  fill(v.data(), v.size(0), salt);
});
inline constexpr auto blend =
    kernel<in_all<word, 1>, std::span<const word>, word, inout_all<word, 1>, out_all<word, 1>, bool>("node_lists.blend")
        .on(cpu, [](std::span<const view<const word, 1>> first, std::span<const word> values, word salt,
                    std::span<const view<word, 1>> changed, std::span<const view<word, 1>> made, bool more) {
          word h = digest_of(elements_of(first), values, elements_of(changed), salt + (more ? 1 : 0));
          for (const auto& v : changed) fill(v.data(), v.size(0), h++);
          for (const auto& v : made) fill(v.data(), v.size(0), h++);
        });
inline constexpr auto of_one_size =
    kernel<in_all<word, 1>, inout_all<word, 1>>("node_lists.of_one_size")
        .requiring(same_shape(0, 1))
        .on(cpu, [](std::span<const view<const word, 1>> from, std::span<const view<word, 1>> to) {
          for (std::size_t i = 0; i < to.size(); ++i)
            for (index_t k = 0; k < to[i].size(0); ++k) to[i].data()[k] += from[i].data()[k];
        });
// What has no members may lie where another argument does.
struct tag {};
inline constexpr auto tagged = kernel<in_all<word, 1>, tag, int, out<word, 1>>("node_lists.tagged")
                                   .on(cpu, [](std::span<const view<const word, 1>> all, tag, int n, view<word, 1> to) {
                                     to(0) = 1000 * all.size() + static_cast<word>(n);
                                   });
const offer offered{make, blend, of_one_size, tagged};

/// Arrays of a runtime, and what they should hold.
struct program {
  program(runtime& rt, int count, index_t size) : a(rt) {
    for (int i = 0; i < count; ++i) {
      arrays.push_back(rt.array<word>({size + i % 3}, tiles(size + i % 3)));
      expected.emplace_back(static_cast<std::size_t>(size + i % 3));
      rt.spawn(make, write(arrays.back()), static_cast<word>(i));
      fill(expected.back().data(), size + i % 3, static_cast<word>(i));
    }
  }
  /// A call on arrays and values drawn at random, by any of the submitters.
  template <class Submitter>
  void call(Submitter& to, const task_options& where, std::mt19937& draw, bool futures) {
    std::vector<std::size_t> order(arrays.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), draw);
    std::size_t next = 0;
    const auto some = [&](std::size_t most) {
      std::vector<std::size_t> which;
      for (std::size_t n = draw() % (most + 1); n > 0 && next < order.size(); --n) which.push_back(order[next++]);
      return which;
    };
    const auto read_of = some(18), changed = some(3), made = some(3);
    const auto handles = [&](const std::vector<std::size_t>& which) {
      std::vector<array<word, 1>> list;
      for (const std::size_t i : which) list.push_back(arrays[i]);
      return list;
    };
    std::vector<word> values(draw() % 20);
    for (word& v : values) v = draw();
    const word salt = draw();
    const bool more = draw() % 2 != 0;
    if (futures) {
      std::vector<future<word>> later;
      for (const word v : values) later.push_back(a.spawn([v] { return v; }));
      to.spawn(where, blend, read_all(handles(read_of)), later, salt, update_all(handles(changed)),
               write_all(handles(made)), more);
    } else {
      to.spawn(where, blend, read_all(handles(read_of)), values, salt, update_all(handles(changed)),
               write_all(handles(made)), more);
    }
    calls.push_back({read_of, changed, made, values, salt + (more ? 1 : 0)});
  }
  /// The calls once more, on what is expected.
  void follow() {
    for (const auto& c : calls) {
      const auto pick = [&](const std::vector<std::size_t>& which) {
        std::vector<std::vector<word>> all;
        for (const std::size_t i : which) all.push_back(expected[i]);
        return all;
      };
      word h = digest_of(pick(c.read_of), c.values, pick(c.changed), c.salt);
      for (const auto* list : {&c.changed, &c.made})
        for (const std::size_t i : *list) fill(expected[i].data(), static_cast<index_t>(expected[i].size()), h++);
    }
  }
  void check() {
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const auto v = arrays[i].read();
      for (index_t k = 0; k < v.size(0); ++k)
        ASSERT_EQ(v(k), expected[i][static_cast<std::size_t>(k)]) << "array " << i << ", element " << k;
    }
  }
  struct one {
    std::vector<std::size_t> read_of, changed, made;
    std::vector<word> values;
    word salt;
  };
  runtime& a;
  std::vector<array<word, 1>> arrays;
  std::vector<std::vector<word>> expected;
  std::vector<one> calls;
};

// Few bytes, which travel inside the messages, and many.
TEST(node_lists, random_programs_on_three_nodes_equal_a_serial_run) {
  several_nodes n(2, 1);
  for (const index_t size : {3, 3000})
    for (unsigned seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE(testing::Message() << "elements " << size << ", seed " << seed);
      std::mt19937 draw(seed);
      program p(n.a, 24, size);
      for (int i = 0; i < 40; ++i) {
        const char* const names[] = {"a", "b", "c"};
        const unsigned at = draw() % 4;
        p.call(n.a, at < 3 ? on(names[at]) : task_options{}, draw, draw() % 3 == 0);
      }
      p.follow();
      p.check();
    }
  EXPECT_GT(test::tasks_of(*n.rest[0], "cpu:0"), 50u);
}

TEST(node_lists, calls_whose_results_are_lost_are_repeated_with_their_lists) {
  test::nodes_apart n;
  std::mt19937 draw(5);
  program p(n.a, 20, 50);
  for (int i = 0; i < 30; ++i) p.call(n.a, on("b"), draw, i % 3 == 0);
  n.a.wait_all();
  n.part();
  p.follow();
  p.check();
}

TEST(node_lists, graphs_over_nodes_have_calls_with_lists) {
  several_nodes n(2, 1);
  for (unsigned seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 draw(seed);
    program p(n.a, 12, 4);
    const graph g = n.a.record([&](recorder& r) {
      for (int i = 0; i < 15; ++i) {
        const char* const names[] = {"a", "b", "c"};
        p.call(r, on(names[draw() % 3]), draw, false);
      }
    });
    for (int run = 0; run < 3; ++run) {
      n.a.run(g).get();
      p.follow();
      p.check();
    }
  }
}

TEST(node_lists, stand_beside_values_without_members) {
  several_nodes n(1, 1);
  const auto x = n.a.filled<word>({2}, tiles(2), 1), to = n.a.array<word>({1});
  const std::vector<array<word, 1>> three(3, x);
  n.a.spawn(on("b"), tagged, read_all(three), tag{}, 7, write(to));
  EXPECT_EQ(to.read()(0), 3'007u);
  std::vector<array<word, 1>> sums;
  for (int i = 0; i < 3; ++i) sums.push_back(n.a.filled<word>({2}, tiles(2), 10));
  n.a.spawn(on("b"), of_one_size, read_all(three), update_all(sums));
  for (const auto& s : sums) EXPECT_EQ(s.read()(1), 11u);
  EXPECT_EQ(test::code_of([&] { n.a.spawn(on("b"), of_one_size, read_all(three), update_all(three)); }),
            errc::overlapping_write);
  sums[2] = to;
  EXPECT_EQ(test::code_of([&] { n.a.spawn(on("b"), of_one_size, read_all(three), update_all(sums)); }),
            errc::bad_argument);
}

// A list of values is one value of the call.
TEST(node_lists, of_more_values_than_go_to_a_node_are_refused_there_and_run_here) {
  several_nodes n(1, 1);
  program p(n.a, 2, 4);
  const std::vector<array<word, 1>> none, one{p.arrays[0]};
  const std::vector<word> most(512, 3), more(513, 3);
  n.a.spawn(on("b"), blend, read_all(none), most, word{1}, update_all(none), write_all(one), true).get();
  const auto done = n.a.spawn(on("b"), blend, read_all(none), more, word{1}, update_all(none), write_all(one), true);
  try {
    done.get();
    ADD_FAILURE() << "4,104 bytes went";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("give it as an array"), std::string::npos) << e.what();
  }
  n.a.spawn(on("a"), blend, read_all(none), more, word{1}, update_all(none), write_all(one), true).get();
}

}  // namespace
