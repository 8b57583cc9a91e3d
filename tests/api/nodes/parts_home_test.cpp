// What this file is for: of a tile that another node or a device has, only the parts that are read here come home.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "several_nodes.hpp"
#include "tests/support/stir_kernels.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using test::several_nodes;
using test::word;
using troupe::index_t;

constexpr word mixed(word x, word by) {
  x = (x ^ by) * 0x85ebca6bu;
  return x ^ (x >> 13);
}

// to = a function of the element and its four neighbours; beyond the edges there are zeros. `shift`: the row of `from`
// that belongs to the first one of `to`.
void lean_on_core(view<const word, 2> from, view<word, 2> to, index_t shift) {
  const auto at = [&](index_t y, index_t x) {
    return y < from.lo(0) || y >= from.hi(0) || x < from.lo(1) || x >= from.hi(1) ? 0 : from(y, x);
  };
  for (index_t i = to.lo(0); i < to.hi(0); ++i)
    for (index_t x = to.lo(1); x < to.hi(1); ++x) {
      const index_t y = i + shift;
      to(i, x) = mixed(at(y - 1, x), at(y, x)) + mixed(at(y, x - 1), 3) * at(y + 1, x) + at(y, x + 1);
    }
}
constexpr auto lean = kernel<in<word, 2>, out<word, 2>, index_t>("parts.lean").on(cpu, &lean_on_core);
constexpr auto stir =
    kernel<inout<word, 1>, word>("parts.stir").on(cpu, &test::stir_on_core).on(gpu, source{test::stir_text, "stir"});
const offer offered{lean, stir};

// An executor of "a", or the other node.
task_options at(const std::string& where) {
  return {.where = where == "b" ? scope::at(where) : scope::executor(where)};
}

std::uint64_t bytes_from_b(const runtime& rt) {
  std::uint64_t n = 0;
  for (const auto& r : rt.nodes()) n += r.bytes_in;
  return n;
}

TEST(nodes_parts_home, a_stencil_over_this_node_and_another_moves_halos_and_no_tiles) {
  several_nodes n(1, 2, 1h);  // no tile is saved here because making it again would take too long
  constexpr index_t rows = 2048, size = 2 * rows;
  constexpr int steps = 8;
  // Two tiles, above each other: one for each node. A halo is a row.
  auto from = n.a.array<word, 2>({size, rows}, tiles(rows, rows)),
       to = n.a.array<word, 2>({size, rows}, tiles(rows, rows));
  std::vector<word> model(size * rows), next(size * rows);
  {
    const auto v = from.write();
    word seed = 1;
    for (index_t y = 0; y < size; ++y)
      for (index_t x = 0; x < rows; ++x)
        model[static_cast<std::size_t>(y * rows + x)] = v(y, x) = seed = mixed(seed, 7);
  }
  const auto step = [&] {
    n.a.spawn(at("cpu:0"), lean, read(from.sub({{0, 0}, {rows + 1, rows}})), write(to.sub({{0, 0}, {rows, rows}})),
              index_t{0});
    n.a.spawn(at("b"), lean, read(from.sub({{rows - 1, 0}, {size, rows}})), write(to.sub({{rows, 0}, {size, rows}})),
              index_t{1});
    std::swap(from, to);
    const auto at = [&](index_t y, index_t x) {
      return y < 0 || y >= size || x < 0 || x >= rows ? 0 : model[static_cast<std::size_t>(y * rows + x)];
    };
    for (index_t y = 0; y < size; ++y)
      for (index_t x = 0; x < rows; ++x)
        next[static_cast<std::size_t>(y * rows + x)] =
            mixed(at(y - 1, x), at(y, x)) + mixed(at(y, x - 1), 3) * at(y + 1, x) + at(y, x + 1);
    model.swap(next);
  };
  step();  // the first one moves tiles
  n.a.wait_all();
  const std::uint64_t before = bytes_from_b(n.a);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) step();
  n.a.wait_all();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  constexpr std::uint64_t halo = rows * sizeof(word);
  EXPECT_GE(bytes_from_b(n.a) - before, steps * halo);
  EXPECT_LE(bytes_from_b(n.a) - before, steps * halo * 11 / 10 + static_cast<std::uint64_t>(taken.count() * 16'000))
      << "and the messages about them, and what members say to each other meanwhile";
  const auto v = from.read();
  for (index_t y = 0; y < size; ++y)
    for (index_t x = 0; x < rows; ++x)
      ASSERT_EQ(v(y, x), model[static_cast<std::size_t>(y * rows + x)]) << y << ' ' << x;
}

// A device copies all of a tile to read a part. That is found when its data is to be moved: here, as the task before it
// goes on when the wait is about to begin, mostly after that has begun.
TEST(parts_home, to_wait_for_a_device_that_copies_a_tile_with_an_open_view_is_an_error) {
  runtime rt(options{.threads = 2, .devices = {{"sim:0"}}});
  const auto x = rt.filled<word>({8}, tiles(8), 1u), y = rt.filled<word>({4}, tiles(4), 0u);
  for (int i = 0; i < 10; ++i) {
    auto v = x.sub({{1}, {2}}).update();
    std::atomic<bool> waits{false};
    rt.spawn([&](view<word, 1>) { waits.wait(false); }, update(y));
    const auto f = rt.spawn({.where = scope::executor("sim:0")}, test::triple, read(x.sub({{4}, {8}})), write(y));
    waits = true;
    waits.notify_all();
    errc code{};
    try {
      f.get();
    } catch (const error& e) {
      code = e.code();
    }
    EXPECT_EQ(code, errc::would_deadlock);
    v.close();
    f.get();
    EXPECT_EQ(y.read()(3), 3u);
  }
}

class nodes_parts_home_random : public testing::TestWithParam<unsigned> {};

// Tiles are changed on cores, two devices and another node, and read in parts and as wholes in between.
TEST_P(nodes_parts_home_random, parts_have_the_values_of_their_place_in_the_program) {
  std::mt19937 random(GetParam());
  const auto pick = [&](index_t lo, index_t hi) { return std::uniform_int_distribution<index_t>(lo, hi)(random); };
  options o = test::node_options("a");
  o.devices = {{"sim:0", 1 << 20, 2}, {"sim:1", 1 << 20, 2}};
  runtime a(o), b(test::node_options("b", a.addresses()));
  ASSERT_TRUE(a.wait_for_nodes(1, std::chrono::seconds(20)));
  const index_t size = pick(1, 5'000), tile = pick(1, size);
  const auto x = a.filled<word>({size}, tiles(tile), word{1});
  std::vector<word> model(static_cast<std::size_t>(size), 1);
  const std::vector<std::string> executors{"cpu:0", "sim:0", "sim:1", "b"};
  struct seen {
    future<std::vector<word>> got;
    std::vector<word> expected;
  };
  std::vector<seen> all;
  for (int i = 0; i < 150; ++i) {
    const auto where = at(executors[static_cast<std::size_t>(pick(0, 3))]);
    if (pick(0, 2) == 0) {
      const index_t t = pick(0, (size - 1) / tile), lo = t * tile, hi = std::min(size, lo + tile);
      const auto factor = static_cast<word>(pick(1, 9));
      a.spawn(where, stir, update(x.sub({{lo}, {hi}})), factor);
      for (index_t k = lo; k < hi; ++k) {
        word& m = model[static_cast<std::size_t>(k)];
        m = m * factor + static_cast<word>(k - lo);
      }
      continue;
    }
    const index_t lo = pick(0, size - 1), hi = pick(0, 3) == 0 ? size : std::min(size, lo + pick(1, 20));
    std::vector<word> expected(model.begin() + lo, model.begin() + hi);
    if (pick(0, 5) == 0) {
      const auto v = x.sub({{lo}, {hi}}).read();
      for (index_t k = v.lo(0); k < v.hi(0); ++k) ASSERT_EQ(v(k), expected[static_cast<std::size_t>(k - v.lo(0))]);
      continue;
    }
    auto got = a.spawn(
        at("cpu:0"),
        [](view<const word, 1> v) {
          std::vector<word> read_here;
          for (index_t k = v.lo(0); k < v.hi(0); ++k) read_here.push_back(v(k));
          return read_here;
        },
        read(x.sub({{lo}, {hi}})));
    all.push_back({std::move(got), std::move(expected)});
  }
  for (seen& s : all) ASSERT_EQ(s.got.get(), s.expected);
  const auto v = x.read();
  for (index_t k = 0; k < size; ++k) ASSERT_EQ(v(k), model[static_cast<std::size_t>(k)]) << k;
}

INSTANTIATE_TEST_SUITE_P(seeds, nodes_parts_home_random, testing::Range(0u, 12u));

}  // namespace
