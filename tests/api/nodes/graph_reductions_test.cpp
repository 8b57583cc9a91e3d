// What this file is for: reductions in recorded graphs whose calls run on several nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Several runtimes in this process, each a node, joined over loopback sockets. "a" records and runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "several_nodes.hpp"
#include "tests/api/gates.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using test::code_of;
using test::several_nodes;
using troupe::index_t;
using word = std::uint64_t;

task_options at(const std::string& node) { return {.where = node == "a" ? scope::here() : scope::at(node)}; }

constexpr word mixed(word x, word by) {
  x = (x ^ by) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 29);
}
word digest(const word* a, index_t n, word salt) {
  for (index_t i = 0; i < n; ++i) salt = mixed(salt, a[i]);
  return salt;
}

// Each works on all of its second array by a digest of the first.
inline constexpr auto make = kernel<in<word, 1>, out<word, 1>, word>("graph_red.make")
                                 .on(cpu, [](view<const word, 1> from, view<word, 1> to, word salt) {
                                   const word h = digest(from.data(), from.size(0), salt);
                                   for (index_t i = 0; i < to.size(0); ++i) to.data()[i] = mixed(h, word(i));
                                 });
inline constexpr auto change = kernel<in<word, 1>, inout<word, 1>, word>("graph_red.change")
                                   .on(cpu, [](view<const word, 1> from, view<word, 1> to, word salt) {
                                     const word h = digest(from.data(), from.size(0), salt);
                                     for (index_t i = 0; i < to.size(0); ++i) to.data()[i] = mixed(to.data()[i], h);
                                   });
inline constexpr auto add = kernel<in<word, 1>, red<word, 1>, word>("graph_red.add")
                                .on(cpu, [](view<const word, 1> from, view<word, 1> to, word salt) {
                                  const word h = digest(from.data(), from.size(0), salt);
                                  for (index_t i = 0; i < to.size(0); ++i) to.data()[i] += mixed(h, word(i));
                                });
inline constexpr auto flip = kernel<in<word, 1>, red<word, 1>, word>("graph_red.flip")
                                 .on(cpu, [](view<const word, 1> from, view<word, 1> to, word salt) {
                                   const word h = digest(from.data(), from.size(0), salt);
                                   for (index_t i = 0; i < to.size(0); ++i) to.data()[i] ^= mixed(h, word(i));
                                 });
struct larger {
  word operator()(word a, word b) const { return std::max(a, b); }
};
inline constexpr auto raise = kernel<in<word, 1>, red<word, 1>, word>("graph_red.raise")
                                  .on(cpu, [](view<const word, 1> from, view<word, 1> to, word salt) {
                                    const word h = digest(from.data(), from.size(0), salt);
                                    for (index_t i = 0; i < to.size(0); ++i)
                                      to.data()[i] = std::max(to.data()[i], mixed(h, word(i)));
                                  });
inline constexpr auto count_up =
    kernel<in<word, 1>, red<word, 1>>("graph_red.count_up").on(cpu, [](view<const word, 1> a, view<word, 1> t) {
      for (index_t i = a.lo(0); i < a.hi(0); ++i) t(0) += a(i);
    });
inline constexpr auto clear =
    kernel<out<word, 1>>("graph_red.clear").on(cpu, [](view<word, 1> t) { std::fill_n(t.data(), t.size(0), word{0}); });
inline std::atomic<int> breaks_at{-1};
inline constexpr auto fragile = kernel<red<word, 1>>("graph_red.fragile").on(cpu, [](view<word, 1> t) {
  if (breaks_at.fetch_sub(1) == 0) throw std::runtime_error("it broke");
  t(0) += 1;
});
struct pair_of_words {
  word first, second;
};
inline constexpr auto of_pairs = kernel<in<word, 1>, red<pair_of_words, 1>>("graph_red.of_pairs")
                                     .on(cpu, [](view<const word, 1> a, view<pair_of_words, 1> t) {
                                       for (index_t i = a.lo(0); i < a.hi(0); ++i) {
                                         t(0).first += a(i);
                                         t(0).second = std::max(t(0).second, a(i));
                                       }
                                     });
struct add_and_raise {
  pair_of_words operator()(pair_of_words a, pair_of_words b) const {
    return {a.first + b.first, std::max(a.second, b.second)};
  }
};
const offer offered{make, change, add, flip, raise, count_up, clear, fragile, of_pairs};

word value_of(const array<word, 1>& a) { return a.read()(0); }

// ---- programs drawn at random ---------------------------------------------------------------------------------------

/// Arrays, and what they should hold; the last one is never changed otherwise than by `raise`.
class program {
 public:
  explicit program(runtime& rt) : rt_(rt) {
    for (const index_t size : {1, 6, 13, 32, 8}) {
      arrays_.push_back(rt.filled<word>({size}, tiles(size == 1 || size == 8 ? size : 5), word(size)));
      model_.emplace_back(static_cast<std::size_t>(size), word(size));
    }
  }
  void record(recorder& r, std::mt19937& draw, int calls) {
    for (int i = 0; i < calls; ++i) {
      static const char* const names[] = {"a", "b", "c"};
      one c{.what = static_cast<int>(draw() % 8), .from = draw() % 5, .to = draw() % 4, .salt = draw()};
      const task_options where = at(names[draw() % 3]);
      if (c.what == 7) c.to = 4;
      if (c.from == c.to) c.from = (c.from + 1) % 4 == c.to ? (c.from + 2) % 4 : (c.from + 1) % 4;
      const auto box_in = [&](std::size_t a) {
        const index_t n = arrays_[a].size(0);
        if (draw() % 2 == 0) return box<1>{{0}, {n}};
        const index_t lo = static_cast<index_t>(draw()) % n;
        return box<1>{{lo}, {lo + 1 + static_cast<index_t>(draw()) % (n - lo)}};
      };
      c.seen = box_in(c.from);
      c.made = box_in(c.to);
      const auto from = arrays_[c.from].sub(c.seen), to = arrays_[c.to].sub(c.made);
      switch (c.what) {
        case 0:
          r.spawn(where, make, read(from), write(to), c.salt);
          break;
        case 1:
          r.spawn(where, change, read(from), update(to), c.salt);
          break;
        case 2:
        case 3:
        case 4:
          r.spawn(where, add, read(from), reduce(to), c.salt);
          break;
        case 5:
        case 6:
          r.spawn(where, flip, read(from), reduce(to, std::bit_xor<>(), word{0}), c.salt);
          break;
        default:
          r.spawn(where, raise, read(from), reduce(to, larger(), word{0}), c.salt);
      }
      calls_.push_back(c);
    }
  }
  void follow() {
    for (const one& c : calls_) {
      const word h =
          digest(&model_[c.from][static_cast<std::size_t>(c.seen.lo[0])], c.seen.hi[0] - c.seen.lo[0], c.salt);
      for (index_t i = 0; i < c.made.hi[0] - c.made.lo[0]; ++i) {
        word& x = model_[c.to][static_cast<std::size_t>(c.made.lo[0] + i)];
        const word made = mixed(h, word(i));
        if (c.what == 0)
          x = made;
        else if (c.what == 1)
          x = mixed(x, h);
        else if (c.what <= 4)
          x += made;
        else if (c.what <= 6)
          x ^= made;
        else
          x = std::max(x, made);
      }
    }
  }
  void check() const {
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
      const auto v = arrays_[a].read();
      for (index_t i = 0; i < v.size(0); ++i)
        ASSERT_EQ(v(i), model_[a][static_cast<std::size_t>(i)]) << "array " << a << ", element " << i;
    }
  }

 private:
  struct one {
    int what;
    std::size_t from, to;
    word salt;
    box<1> seen{}, made{};
  };
  runtime& rt_;
  std::vector<array<word, 1>> arrays_;
  std::vector<std::vector<word>> model_;
  std::vector<one> calls_;
};

TEST(graph_reductions, random_programs_equal_a_serial_run) {
  several_nodes n(2);
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 draw(seed);
    program p(n.a);
    const graph g = n.a.record([&](recorder& r) { p.record(r, draw, 5 + static_cast<int>(seed)); });
    for (int run = 0; run < 3; ++run) {
      n.a.run(g).get();
      p.follow();
      p.check();
      if (testing::Test::HasFailure()) return;
    }
  }
}

// ---- what programs do -----------------------------------------------------------------------------------------------

// As the norm of a residual, once a step.
TEST(graph_reductions, add_up_what_all_nodes_have_in_each_step) {
  several_nodes n(2);
  const auto x = n.a.filled<word>({30}, tiles(10), 1);
  const auto sum = n.a.filled<word>({1}, tiles(1), 0), all = n.a.filled<word>({4}, tiles(4), 0);
  const std::array<std::string, 3> names{"a", "b", "c"};
  const graph g = n.a.record([&](recorder& r) {
    for (index_t step = 0; step < 4; ++step) {
      r.spawn(at("a"), clear, write(sum));
      for (std::size_t i = 0; i < 3; ++i) {
        const index_t lo = 10 * static_cast<index_t>(i);
        r.spawn(at(names[i]), count_up, read(x.sub({{lo}, {lo + 10}})), reduce(sum));
      }
      r.spawn(at("a"), count_up, read(sum), reduce(all.sub({{step}, {step + 1}})));
    }
  });
  for (word run = 1; run <= 5; ++run) {
    n.a.run(g).get();
    const auto v = all.read();
    for (index_t step = 0; step < 4; ++step) EXPECT_EQ(v(step), 30 * run);
  }
}

TEST(graph_reductions, of_many_chunks_on_one_node_are_added_up_there) {
  several_nodes n(1, 2, 1h);
  constexpr index_t size = 1 << 16;
  const auto x = n.a.filled<word>({size}, tiles(size), 1);
  const auto wide = n.a.filled<word>({512}, tiles(512), 0);
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(at("b"), change, read(wide), update(x), word{1});
    for (int i = 0; i < 64; ++i) r.spawn(at("b"), add, read(x.sub({{i}, {i + 1}})), reduce(wide), word{3});
  });
  n.a.run(g).get();
  const std::uint64_t before = test::bytes_of(n.a);
  for (int run = 0; run < 4; ++run) n.a.run(g).get();
  EXPECT_LT(test::bytes_of(n.a) - before, 4u * (3 * 4096 + 4096))
      << "one partial of 4 KiB a run, and what the calls read";
}

TEST(graph_reductions, may_be_into_an_array_of_another_node) {
  several_nodes n(2);
  const auto x = n.a.filled<word>({30}, tiles(10), 2);
  const auto sum = n.a.filled<word>({1}, tiles(1), 0);
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(at("b"), clear, write(sum));
    for (const char* name : {"a", "b", "c"})
      for (index_t i = 0; i < 3; ++i) r.spawn(at(name), count_up, read(x.sub({{10 * i}, {10 * i + 10}})), reduce(sum));
  });
  for (int run = 0; run < 3; ++run) {
    n.a.run(g).get();
    EXPECT_EQ(value_of(sum), 180u);
  }
}

TEST(graph_reductions, by_an_operator_of_the_program_end_where_it_was_recorded) {
  several_nodes n(2);
  const auto x = n.a.filled<word>({30}, tiles(10), 2);
  const auto t = n.a.filled<pair_of_words>({1}, tiles(1), pair_of_words{0, 0});
  const auto sum = n.a.filled<word>({1}, tiles(1), 0);
  const graph g = n.a.record([&](recorder& r) {
    for (const char* name : {"a", "b", "c"})
      for (index_t i = 0; i < 3; ++i)
        r.spawn(at(name), of_pairs, read(x.sub({{10 * i}, {10 * i + 10}})),
                reduce(t, add_and_raise(), pair_of_words{0, 0}));
  });
  n.a.run(g).get();
  n.a.run(g).get();
  EXPECT_EQ(t.read()(0).first, 360u);
  EXPECT_EQ(t.read()(0).second, 2u);
  try {
    n.a.record([&](recorder& r) {
      r.spawn(at("b"), clear, write(sum));
      r.spawn(at("c"), raise, read(x.sub({{0}, {3}})), reduce(sum, larger(), word{0}), word{1});
    });
    ADD_FAILURE() << "it was recorded";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::not_supported);
    EXPECT_NE(std::string(e.what()).find("operator"), std::string::npos) << e.what();
  }
}

// An array may have its tiles on two nodes, and the call's partial is then added up on both.
TEST(graph_reductions, by_an_operator_of_the_program_are_refused_where_another_node_would_have_to_know_it) {
  several_nodes n(1);
  const auto x = n.a.filled<word>({4}, tiles(4), 2), two = n.a.filled<word>({8}, tiles(4), 0);
  const auto text_of = [&](const std::function<void(recorder&)>& f) -> std::string {
    try {
      n.a.record(f);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::not_supported) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "it was recorded";
    return "";
  };
  for (const index_t lo : {0, 4}) {
    const std::string why = text_of([&](recorder& r) {
      r.spawn(at("b"), change, read(x), update(two.sub({{lo}, {lo + 4}})), word{1});
      r.spawn(at("b"), raise, read(x), reduce(two, larger(), word{0}), word{1});
    });
    EXPECT_NE(why.find("operator"), std::string::npos) << why;
  }
  EXPECT_EQ(n.a.nodes().size(), 1u) << "they have given each other up";
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(at("b"), change, read(x), update(two), word{1});
    r.spawn(at("b"), raise, read(x), reduce(two, larger(), word{0}), word{1});
  });
  n.a.run(g).get();
}

TEST(graph_reductions, whose_body_throws_fail_the_run_and_later_runs_are_right) {
  several_nodes n(1);
  const auto sum = n.a.filled<word>({1}, tiles(1), 0);
  const graph g = n.a.record([&](recorder& r) {
    r.spawn(at("a"), clear, write(sum));
    for (int i = 0; i < 6; ++i) r.spawn(at(i % 2 == 0 ? "a" : "b"), fragile, reduce(sum));
  });
  for (const int broken : {-1, 3, -1, 0, 5, -1}) {
    breaks_at = broken;
    const auto done = n.a.run(g);
    if (broken >= 0) {
      EXPECT_EQ(code_of([&] { done.get(); }), errc::task_failed);
      n.a.spawn(at("a"), clear, write(sum)).get();
    } else {
      done.get();
      EXPECT_EQ(value_of(sum), 6u);
    }
  }
}

}  // namespace
