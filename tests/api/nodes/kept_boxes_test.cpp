// What this file is for: where tasks of another node have read a part of a tile, that part is kept for repetition.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "nodes_apart.hpp"
#include "several_nodes.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using troupe::index_t;
using word = std::uint64_t;

constexpr word mixed(word h, word x) { return (h ^ x) * 0x9e3779b97f4a7c15u + (h >> 29); }

// Each line becomes a function of itself and of its neighbours; `shift`: from a line to its counterpart in `from`.
void lean_on(view<const word, 2> from, view<word, 2> to, index_t shift) {
  for (index_t y = 0; y < to.size(0); ++y)
    for (index_t x = 0; x < to.size(1); ++x) {
      word h = from(y + shift, x);
      for (const index_t other : {y + shift - 1, y + shift + 1})
        h = mixed(h, other < 0 || other >= from.size(0) ? 0 : from(other, x));
      to(y, x) = h;
    }
}
inline constexpr auto lean =
    kernel<in<word, 2>, out<word, 2>, index_t>("kept.lean")
        .on(cpu, [](view<const word, 2> from, view<word, 2> to, index_t shift) { lean_on(from, to, shift); });
const offer offered{lean};

constexpr index_t columns = 1'024, height = 1'024;  // of a tile: 8 MiB

/// Two tiles, the lower one at "b", and steps that need a line of the other.
struct two_halves {
  explicit two_halves(runtime& rt) : a(rt) {
    for (auto* const x : {&from, &to}) *x = a.array<word>({2 * height, columns}, tiles(height, columns));
    auto all = from.write();
    model.resize(static_cast<std::size_t>(2 * height * columns));
    for (std::size_t i = 0; i < model.size(); ++i) model[i] = mixed(i, 1);
    for (index_t y = 0; y < 2 * height; ++y)
      for (index_t x = 0; x < columns; ++x) all(y, x) = model[static_cast<std::size_t>(y * columns + x)];
  }
  void step() {
    a.spawn({.where = scope::here()}, lean, read(from.sub({{0, 0}, {height + 1, columns}})),
            write(to.sub({{0, 0}, {height, columns}})), index_t{0});
    a.spawn(test::on("b"), lean, read(from.sub({{height - 1, 0}, {2 * height, columns}})),
            write(to.sub({{height, 0}, {2 * height, columns}})), index_t{1});
    std::swap(from, to);
    std::vector<word> next(model.size());
    const auto at = [&](index_t y, index_t x) {
      return y < 0 || y >= 2 * height ? 0 : model[static_cast<std::size_t>(y * columns + x)];
    };
    for (index_t y = 0; y < 2 * height; ++y)
      for (index_t x = 0; x < columns; ++x)
        next[static_cast<std::size_t>(y * columns + x)] = mixed(mixed(at(y, x), at(y - 1, x)), at(y + 1, x));
    model.swap(next);
  }
  void check() const {
    const auto all = from.read();
    for (index_t y = 0; y < 2 * height; ++y)
      for (index_t x = 0; x < columns; ++x)
        ASSERT_EQ(all(y, x), model[static_cast<std::size_t>(y * columns + x)]) << y << ", " << x;
  }

  runtime& a;
  array<word, 2> from, to;
  std::vector<word> model;
};

// 40 kept tiles would be more than may be kept; then results come home.
TEST(kept_boxes, spare_a_stencil_of_large_tiles_their_way_home) {
  test::several_nodes n(1, 1, 1h);  // nothing is saved because it would take too long to repeat
  two_halves s(n.a);
  for (int i = 0; i < 2; ++i) s.step();
  n.a.wait_all();
  const std::uint64_t before = test::bytes_of(n.a);
  for (int i = 0; i < 40; ++i) s.step();
  n.a.wait_all();
  EXPECT_LT(test::bytes_of(n.a) - before, 40u * 2 * columns * sizeof(word) * 11 / 10)
      << "lines of 8 KiB, a tenth for the rest";
  s.check();
}

// What the lower half needs of the upper one in each step is no more here than the lines that it has read.
TEST(kept_boxes, are_enough_to_repeat_what_was_made_of_them) {
  test::nodes_apart n([](options& o) { o.cluster.replay_max = 1h; });
  two_halves s(n.a);
  for (int i = 0; i < 12; ++i) s.step();
  n.a.wait_all();
  n.part();
  s.check();
}

}  // namespace
