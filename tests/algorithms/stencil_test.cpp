// What this file is for: checks Jacobi, Life and wide windows against plain serial loops for every border.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/stencil.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "device_fixture.hpp"

namespace {

using namespace troupe;
using troupe::index_t;

// A world of the plain reference: row-major, with the border rule applied element by element.
template <class T>
struct plain {
  index_t height, width;
  std::vector<T> cells;
  border edge;
  T outside;

  T at(index_t y, index_t x) const {
    if (edge == border::wrap) {
      y = (y % height + height) % height;
      x = (x % width + width) % width;
    } else if (edge == border::clamp) {
      y = std::clamp<index_t>(y, 0, height - 1);
      x = std::clamp<index_t>(x, 0, width - 1);
    } else if (y < 0 || y >= height || x < 0 || x >= width) {
      return outside;
    }
    return cells[static_cast<std::size_t>(y * width + x)];
  }
  template <class F>
  void step(const F& f) {
    std::vector<T> next;
    for (index_t y = 0; y < height; ++y)
      for (index_t x = 0; x < width; ++x) next.push_back(f(*this, y, x));
    cells = std::move(next);
  }
};

double relax(const plain<double>& w, index_t y, index_t x) {
  return 0.25 * ((w.at(y - 1, x) + w.at(y + 1, x)) + (w.at(y, x - 1) + w.at(y, x + 1)));
}

std::uint8_t live(const plain<std::uint8_t>& w, index_t y, index_t x) {
  int neighbours = 0;
  for (index_t dy = -1; dy <= 1; ++dy)
    for (index_t dx = -1; dx <= 1; ++dx)
      if (dy != 0 || dx != 0) neighbours += w.at(y + dy, x + dx) != 0;
  return neighbours == 3 || (neighbours == 2 && w.at(y, x) != 0);
}

struct world {
  index_t height, width, tile_height, tile_width;
  int steps;
  border edge;
  int threads, core_groups;
};

std::string name_of(const testing::TestParamInfo<world>& info) {
  const world& w = info.param;
  const char* rule = w.edge == border::wrap ? "wrap" : w.edge == border::clamp ? "clamp" : "fill";
  return std::to_string(w.height) + "x" + std::to_string(w.width) + "_tile" + std::to_string(w.tile_height) + "x" +
         std::to_string(w.tile_width) + "_steps" + std::to_string(w.steps) + "_" + rule + "_threads" +
         std::to_string(w.threads) + "_groups" + std::to_string(w.core_groups);
}

std::vector<world> worlds() {
  std::vector<world> all_worlds;
  for (border edge : {border::wrap, border::clamp, border::fill})
    for (const world& w :
         {world{1, 1, 1, 1, 3, edge, 1, 1}, world{1, 1, 8, 8, 2, edge, 2, 1}, world{1, 13, 1, 4, 5, edge, 2, 2},
          world{17, 1, 3, 1, 4, edge, 2, 1}, world{2, 3, 1, 1, 6, edge, 4, 2}, world{23, 19, 64, 64, 4, edge, 1, 1},
          world{23, 19, 5, 7, 7, edge, 2, 1}, world{31, 37, 8, 8, 9, edge, 4, 2}, world{16, 16, 16, 4, 5, edge, 2, 2},
          world{11, 10, 1, 1, 3, edge, 4, 1}})
      all_worlds.push_back(w);
  return all_worlds;
}

template <class T>
void expect_equal(const array<T, 2>& result, const plain<T>& reference) {
  const auto seen = result.read();
  for (index_t y = 0; y < reference.height; ++y)
    for (index_t x = 0; x < reference.width; ++x)
      ASSERT_EQ(seen(y, x), reference.cells[static_cast<std::size_t>(y * reference.width + x)]) << y << "," << x;
}

// Runs both programs from a random start.
void expect_relaxes(runtime& rt, const world& w, const scope& where) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> value(-10, 10);
  std::vector<double> start(static_cast<std::size_t>(w.height * w.width));
  for (double& x : start) x = value(random);
  auto a = rt.adopt(start, {w.height, w.width}, tiles(w.tile_height, w.tile_width), "heat");
  plain<double> reference{w.height, w.width, start, w.edge, 2.5};
  for (int s = 0; s < w.steps; ++s) reference.step(relax);
  expect_equal(algorithms::jacobi(rt, a, w.steps, w.edge, 2.5, where), reference);
}
void expect_lives(runtime& rt, const world& w, std::uint8_t outside, const scope& where) {
  std::mt19937 random(6 + outside);
  std::vector<std::uint8_t> start(static_cast<std::size_t>(w.height * w.width));
  for (auto& cell : start) cell = random() % 3 == 0;
  auto a = rt.adopt(start, {w.height, w.width}, tiles(w.tile_height, w.tile_width), "world");
  plain<std::uint8_t> reference{w.height, w.width, start, w.edge, outside};
  for (int s = 0; s < w.steps; ++s) reference.step(live);
  expect_equal(algorithms::life(rt, a, w.steps, w.edge, outside, where), reference);
}

class stencil_on : public testing::TestWithParam<world> {
 protected:
  const world& w_ = GetParam();
  runtime rt_{options{.threads = w_.threads, .core_groups = w_.core_groups}};
};

TEST_P(stencil_on, a_tiled_array_relaxes_as_the_serial_loop_does) { expect_relaxes(rt_, w_, {}); }

TEST_P(stencil_on, a_tiled_array_lives_as_the_serial_loop_does) {
  for (std::uint8_t outside : {0, 1}) expect_lives(rt_, w_, outside, {});
}

INSTANTIATE_TEST_SUITE_P(shapes, stencil_on, testing::ValuesIn(worlds()), name_of);

class stencil_on_devices : public troupe_test::device_fixture {
 protected:
  // Tiles that do not divide the array, and an array of one element, with every border.
  template <class F>
  void for_some(const F& f) {
    std::uint64_t all = 0;
    for (border edge : {border::wrap, border::clamp, border::fill})
      for (const world& w : {world{23, 19, 5, 7, 3, edge, 0, 0}, world{37, 34, 16, 33, 2, edge, 0, 0},
                             world{1, 1, 8, 8, 2, edge, 0, 0}}) {
        SCOPED_TRACE(name_of({w, 0}));
        f(w);
        all += static_cast<std::uint64_t>(w.steps * ((w.height + w.tile_height - 1) / w.tile_height) *
                                          ((w.width + w.tile_width - 1) / w.tile_width));
      }
    expect_tasks_on_device(all);
  }
};

TEST_P(stencil_on_devices, relaxes_as_the_serial_loop_does) {
  for_some([&](const world& w) { expect_relaxes(rt(), w, where()); });
}

TEST_P(stencil_on_devices, lives_as_the_serial_loop_does) {
  for_some([&](const world& w) { expect_lives(rt(), w, w.height % 2, where()); });
}

// Tiles that cores have given room to go there and come back.
TEST_P(stencil_on_devices, lives_on_cores_and_there_by_turns) {
  constexpr index_t height = 70, width = 90;
  std::mt19937 random(9);
  plain<std::uint8_t> reference{height, width, {}, border::wrap, 0};
  for (index_t i = 0; i < height * width; ++i) reference.cells.push_back(random() % 3 == 0);
  auto a = rt().array<std::uint8_t>({height, width}, tiles(32, 32), "world");
  {
    const auto cells = a.write();
    for (index_t y = 0; y < height; ++y)
      for (index_t x = 0; x < width; ++x) cells(y, x) = reference.cells[static_cast<std::size_t>(y * width + x)];
  }
  for (int turn = 0; turn < 6; ++turn) {
    // An even number of steps: the array that comes back is the one that cores have given room.
    const scope at = turn % 2 == 0 ? scope::cpu() : where();
    a = algorithms::life(rt(), a, 4, border::wrap, 0, at);
    for (int s = 0; s < 4; ++s) reference.step(live);
    if (turn % 3 == 2) expect_equal(a, reference);
  }
  expect_equal(a, reference);
}

INSTANTIATE_TEST_SUITE_P(devices, stencil_on_devices, troupe_test::every_place(), troupe_test::name_of_place);

// ---- windows wider than tiles and arrays ----------------------------------------------------------------------------

constexpr auto weighted_sum =
    kernel<in<std::uint64_t, 2>, out<std::uint64_t, 2>, index_t, index_t>("weighted_sum")
        .on(cpu, [](view<const std::uint64_t, 2> from, view<std::uint64_t, 2> to, index_t ry, index_t rx) {
          for (index_t y = to.lo(0); y < to.hi(0); ++y)
            for (index_t x = to.lo(1); x < to.hi(1); ++x) {
              std::uint64_t sum = 0;
              for (index_t dy = -ry; dy <= ry; ++dy)
                for (index_t dx = -rx; dx <= rx; ++dx) sum = sum * 31 + from.at(y + dy, x + dx);
              to.at(y, x) = sum;
            }
        });

struct wide {
  index_t height, width, tile, radius_y, radius_x;
};

void expect_wide_window(const wide& shape, border edge) {
  SCOPED_TRACE(std::to_string(shape.height) + "x" + std::to_string(shape.width) + " tile " +
               std::to_string(shape.tile) + " radius " + std::to_string(shape.radius_y) + "," +
               std::to_string(shape.radius_x) + " border " + std::to_string(static_cast<int>(edge)));
  runtime rt(options{.threads = 2, .core_groups = 2});
  std::vector<std::uint64_t> start;
  for (index_t i = 0; i < shape.height * shape.width; ++i) start.push_back(static_cast<std::uint64_t>(i * i + 1));
  auto from = rt.adopt(start, {shape.height, shape.width}, tiles(shape.tile, shape.tile), "from");
  auto to = rt.array<std::uint64_t>({shape.height, shape.width}, tiles(shape.tile, shape.tile), "to");
  const std::uint64_t outside = 99;
  auto around = window(shape.radius_y, shape.radius_x);
  around = edge == border::wrap ? around.wrap() : edge == border::clamp ? around.clamp() : around.fill(outside);
  rt.for_each(grid(shape.height, shape.width), weighted_sum, read(from, around), write(to), shape.radius_y,
              shape.radius_x);
  plain<std::uint64_t> reference{shape.height, shape.width, start, edge, outside};
  reference.step([&](const auto& w, index_t y, index_t x) {
    std::uint64_t sum = 0;
    for (index_t dy = -shape.radius_y; dy <= shape.radius_y; ++dy)
      for (index_t dx = -shape.radius_x; dx <= shape.radius_x; ++dx) sum = sum * 31 + w.at(y + dy, x + dx);
    return sum;
  });
  expect_equal(to, reference);
}

constexpr wide wide_shapes[] = {
    {13, 11, 2, 3, 5},  // radius larger than the tile
    {7, 5, 64, 2, 2},   // tile larger than the array
    {3, 2, 1, 7, 5},    // radius larger than the array
    {1, 1, 4, 3, 3},    // a single element
    {9, 14, 4, 0, 6},   // no halo along one dimension
    {12, 12, 3, 15, 1},
};

TEST(window, that_wraps_shows_the_array_again_and_again) {
  for (const wide& shape : wide_shapes) expect_wide_window(shape, border::wrap);
}
TEST(window, that_clamps_shows_the_nearest_element) {
  for (const wide& shape : wide_shapes) expect_wide_window(shape, border::clamp);
}
TEST(window, that_fills_shows_the_constant) {
  for (const wide& shape : wide_shapes) expect_wide_window(shape, border::fill);
}

// ---- calls that are wrong or do nothing -----------------------------------------------------------------------------

TEST(stencil, of_no_steps_gives_the_start) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<double>({3, 3}, tiles(2, 2), 4.0);
  EXPECT_EQ(algorithms::jacobi(rt, a, 0, border::wrap).read()(2, 1), 4.0);
}

TEST(stencil, after_an_even_number_of_steps_is_in_the_start_array) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<std::uint8_t>({6, 6}, tiles(2, 2), 1);
  auto result = algorithms::life(rt, a, 2, border::wrap);
  EXPECT_EQ(result.read()(3, 3), 0);
  EXPECT_EQ(a.read()(3, 3), 0);
}

TEST(stencil, refuses_borders_without_values_and_negative_steps) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<double>({3, 3}, tiles(2, 2), 4.0);
  const auto refused = [&](const array<double, 2>& start, int steps, border edge) {
    try {
      algorithms::jacobi(rt, start, steps, edge);
    } catch (const error& e) {
      return e.code() == errc::bad_argument;
    }
    return false;
  };
  EXPECT_TRUE(refused(a, 1, border::clip));
  EXPECT_TRUE(refused(a, 1, border::refuse));
  EXPECT_TRUE(refused(a, -1, border::wrap));
  EXPECT_TRUE(refused(array<double, 2>(), 1, border::wrap));
}

}  // namespace
