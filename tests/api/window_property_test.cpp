// What this file is for: random tilings, chunks, radii and borders show every element that a per-element model shows.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "points.hpp"

namespace {

using namespace troupe;
using troupe::index_t;

using test::at;
using test::for_points;
using test::point;

template <int N>
struct scenario {
  extent<N> size{}, tile{}, chunk{};
  point<N> radius{};
  border edge = border::clip;

  std::string text() const {
    std::string s;
    const auto list = [&](const char* what, const auto& values) {
      s += std::string(what) + " ";
      for (int d = 0; d < N; ++d) s += std::to_string(values[static_cast<std::size_t>(d)]) + " ";
    };
    list("size", size.sizes);
    list("tile", tile.sizes);
    list("chunk", chunk.sizes);
    list("radius", radius);
    return s + "border " + std::to_string(static_cast<int>(edge));
  }
};

constexpr std::int64_t outside = -77;

// Returns what an index shows by the model; -1: nothing (the view ends there).
index_t shown(index_t i, index_t size, border edge) {
  if (i >= 0 && i < size) return i;
  switch (edge) {
    case border::wrap:
      return (i % size + size) % size;
    case border::clamp:
      return std::clamp<index_t>(i, 0, size - 1);
    default:
      return -1;
  }
}

template <int N>
void expect_like_the_model(runtime& rt, const scenario<N>& s) {
  SCOPED_TRACE(s.text());
  const box<N> everything = whole(s.size);
  const auto position = [&](const point<N>& p) {
    index_t o = 0;
    for (std::size_t d = 0; d < N; ++d) o = o * s.size[static_cast<int>(d)] + p[d];
    return o;
  };
  auto from = rt.array<std::int64_t, N>(s.size, tile_shape<N>{s.tile}, "from");
  auto to = rt.array<std::int64_t, N>(s.size, tile_shape<N>{s.tile}, "to");
  {
    const auto all_of_it = from.write();
    for_points(everything, [&](const point<N>& p) { at(all_of_it, p) = 1 + position(p); });
  }
  window_mapper<N> around;
  around.radius = s.radius;
  around = s.edge == border::wrap    ? around.wrap()
           : s.edge == border::clamp ? around.clamp()
           : s.edge == border::fill  ? around.fill(outside)
                                     : around;
  const auto neighbourhood = [radius = s.radius](const point<N>& p) {
    box<N> b;
    for (std::size_t d = 0; d < N; ++d) {
      b.lo[d] = p[d] - radius[d];
      b.hi[d] = p[d] + radius[d] + 1;
    }
    return b;
  };
  rt.for_each(
      index_space<N>{s.size, s.chunk},
      [neighbourhood](view<const std::int64_t, N> seen, view<std::int64_t, N> result) {
        for_points(result.bounds(), [&](const point<N>& p) {
          std::int64_t sum = 0;
          for_points(intersect(neighbourhood(p), seen.bounds()),
                     [&](const point<N>& q) { sum = sum * 31 % 1'000'000'007 + at(seen, q); });
          at(result, p) = sum;
        });
      },
      read(from, around), write(to, one_to_one{}));
  const auto result = to.read();
  for_points(everything, [&](const point<N>& p) {
    std::int64_t sum = 0;
    for_points(neighbourhood(p), [&](const point<N>& q) {
      point<N> source;
      bool inside = true;
      for (std::size_t d = 0; d < N; ++d) {
        source[d] = shown(q[d], s.size[static_cast<int>(d)], s.edge);
        inside = inside && source[d] >= 0;
      }
      if (!inside && s.edge == border::clip) return;
      sum = sum * 31 % 1'000'000'007 + (inside ? 1 + position(source) : outside);
    });
    ASSERT_EQ(at(result, p), sum) << "at offset " << position(p);
  });
}

template <int N>
scenario<N> random_scenario(std::mt19937& random, index_t size_max, index_t radius_max) {
  const auto pick = [&](index_t lo, index_t hi) { return std::uniform_int_distribution<index_t>(lo, hi)(random); };
  scenario<N> s;
  const bool own_chunks = pick(0, 2) == 0;
  for (int d = 0; d < N; ++d) {
    s.size[d] = pick(1, size_max);
    s.tile[d] = pick(1, s.size[d] + 3);
    s.chunk[d] = own_chunks ? pick(1, s.size[d] + 2) : 0;
    s.radius[static_cast<std::size_t>(d)] = pick(0, radius_max);
  }
  const border edges[] = {border::clip, border::clamp, border::wrap, border::fill};
  s.edge = edges[pick(0, 3)];
  return s;
}

template <int N>
void expect_all_like_the_model(index_t size_max, index_t radius_max, std::uint32_t first_seed, std::uint32_t count) {
  runtime one(options{.threads = 1}), four(options{.threads = 4, .core_groups = 2});
  for (std::uint32_t seed = first_seed; seed < first_seed + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    expect_like_the_model(seed % 2 ? one : four, random_scenario<N>(random, size_max, radius_max));
    if (testing::Test::HasFailure()) break;
  }
}

TEST(random_windows, of_one_dimension_show_what_the_model_shows) { expect_all_like_the_model<1>(60, 20, 1, 200); }
TEST(random_windows, of_two_dimensions_show_what_the_model_shows) { expect_all_like_the_model<2>(18, 4, 1001, 150); }
TEST(random_windows, of_three_dimensions_show_what_the_model_shows) { expect_all_like_the_model<3>(7, 2, 2001, 60); }
TEST(random_windows, of_four_dimensions_show_what_the_model_shows) { expect_all_like_the_model<4>(4, 1, 3001, 30); }

}  // namespace
