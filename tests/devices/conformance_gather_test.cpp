// What this file is for: boxes with borders, assembled from a tile on every device: each rank, border and size.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "conformance.hpp"
#include "devices/gather.hpp"

namespace conformance_suite {

namespace {

using point = std::array<index_t, troupe::rank_max>;

strides packed(const point& size) {
  strides s;
  index_t step = 1;
  for (int d = troupe::rank_max - 1; d >= 0; --d) {
    s[d] = step;
    step *= size[d];
  }
  return s;
}
index_t volume(const point& size) { return size[0] * size[1] * size[2] * size[3]; }

gather_side side(const point& lo, const point& size) {
  gather_side s{lo, lo, packed(size)};
  for (int d = 0; d < troupe::rank_max; ++d) s.hi[d] += size[d];
  return s;
}

std::vector<std::uint8_t> random_bytes(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> v(n);
  for (auto& x : v) x = static_cast<std::uint8_t>(random());
  return v;
}

// As the kernel is meant: element by element.
void gather_here(const gather_side& from, const std::vector<std::uint8_t>& source, const gather_side& to,
                 std::vector<std::uint8_t>& target, std::size_t element) {
  point at;
  const auto offset_of = [&](const gather_side& s, const point& p) {
    index_t offset = s.offset;
    for (int d = 0; d < troupe::rank_max; ++d) offset += (p[d] - s.lo[d]) * s.stride[d];
    return static_cast<std::size_t>(offset) * element;
  };
  for (at[0] = to.lo[0]; at[0] < to.hi[0]; ++at[0])
    for (at[1] = to.lo[1]; at[1] < to.hi[1]; ++at[1])
      for (at[2] = to.lo[2]; at[2] < to.hi[2]; ++at[2])
        for (at[3] = to.lo[3]; at[3] < to.hi[3]; ++at[3]) {
          point near = at;
          for (int d = 0; d < troupe::rank_max; ++d) near[d] = std::clamp(at[d], from.lo[d], from.hi[d] - 1);
          std::memcpy(&target[offset_of(to, at)], &source[offset_of(from, near)], element);
        }
}

// The box `to` of a packed array of its own, from a part of a packed tile.
void compare(accelerator& a, const gather_side& from, index_t from_elements, const gather_side& to, index_t to_elements,
             std::size_t element) {
  const auto source = random_bytes(static_cast<std::size_t>(from_elements) * element, 1);
  auto expected = random_bytes(static_cast<std::size_t>(to_elements) * element, 2);
  const auto before = expected;
  const block tile(a, source.size()), box(a, expected.size());
  put(a, 0, tile.at(), source);
  gather_here(from, source, to, expected, element);
  for (const bool by_kernel : {false, true}) {
    put(a, 0, box.at(), before);
    if (by_kernel) {
      const gather_plan plan(from, to, element);
      plan.launch(a, 0, a.load({"gather", kernels::gather, plan.entry()}), tile.at(), box.at());
    } else {
      gather(a, 0, kernels::gather, from, tile.at(), to, box.at(), element);
    }
    const auto out = content<std::uint8_t>(a, box.at(), expected.size());
    const auto wrong = std::mismatch(out.begin(), out.end(), expected.begin());
    ASSERT_TRUE(wrong.first == out.end()) << "byte " << wrong.first - out.begin() << " of " << out.size()
                                          << ", elements of " << element << (by_kernel ? ", by the kernel alone" : "");
  }
}

TEST_P(conformance, gathers_of_every_rank_are_as_on_the_host) {
  const auto a = open();
  std::mt19937 random(7);
  const auto pick = [&](index_t lo, index_t hi) { return std::uniform_int_distribution<index_t>(lo, hi)(random); };
  for (int round = 0; round < 60; ++round) {
    const int rank = 1 + round % troupe::rank_max;
    point tile{1, 1, 1, 1}, lo{}, low{}, size{1, 1, 1, 1}, wide{1, 1, 1, 1};
    gather_side from, to;
    for (int d = 0; d < rank; ++d) {
      tile[d] = pick(1, 9);
      low[d] = pick(0, tile[d] - 1);  // the part of the tile
      size[d] = pick(1, tile[d] - low[d]);
      lo[d] = low[d] + size[d] - 1 - pick(0, 12);  // the box, which touches it or does not
      wide[d] = pick(1, 14);
    }
    from = side(low, size);
    from.stride = packed(tile);
    for (int d = 0; d < rank; ++d) from.offset += low[d] * from.stride[d];
    to = side(lo, wide);
    const std::array<std::size_t, 8> elements{1, 2, 3, 4, 8, 12, 16, 24};
    SCOPED_TRACE("round " + std::to_string(round) + ", rank " + std::to_string(rank));
    ASSERT_NO_FATAL_FAILURE(compare(*a, from, volume(tile), to, volume(wide), elements[pick(0, 7)]));
  }
}

// One to twelve tiles in a row, of which each gives a slice of the box: those at the ends have its border.
TEST_P(conformance, gathers_from_several_tiles_are_as_on_the_host) {
  const auto a = open();
  std::mt19937 random(11);
  const auto pick = [&](index_t lo, index_t hi) { return std::uniform_int_distribution<index_t>(lo, hi)(random); };
  for (int round = 0; round < 40; ++round) {
    const int rank = 1 + round % troupe::rank_max;
    const auto cut = static_cast<std::size_t>(pick(0, rank - 1));
    const std::array<std::size_t, 6> elements{1, 2, 4, 8, 12, 16};
    const std::size_t element = elements[static_cast<std::size_t>(pick(0, 5))],
                      n = static_cast<std::size_t>(pick(1, 12));
    point tile{1, 1, 1, 1}, low{}, wide{1, 1, 1, 1};
    for (int d = 0; d < rank; ++d) {
      tile[d] = pick(1, round % 5 == 0 ? 40 : 9);
      low[d] = -pick(0, 3);
      wide[d] = tile[d] - low[d] + pick(0, 3);
    }
    wide[cut] += tile[cut] * static_cast<index_t>(n - 1);
    const gather_side box = side(low, wide);
    std::vector<std::vector<std::uint8_t>> source;
    std::vector<std::unique_ptr<block>> there;
    std::vector<gather_piece> pieces;
    auto expected = random_bytes(static_cast<std::size_t>(volume(wide)) * element, 2);
    const auto before = expected;
    for (std::size_t k = 0; k < n; ++k) {
      point at{};
      at[cut] = tile[cut] * static_cast<index_t>(k);
      source.push_back(random_bytes(static_cast<std::size_t>(volume(tile)) * element, 5 + static_cast<unsigned>(k)));
      there.push_back(std::make_unique<block>(*a, source[k].size()));
      put(*a, 0, there[k]->at(), source[k]);
      gather_side to = box;
      if (k > 0) to.lo[cut] = at[cut];
      if (k + 1 < n) to.hi[cut] = at[cut] + tile[cut];
      to.offset = (to.lo[cut] - box.lo[cut]) * box.stride[cut];
      pieces.push_back({side(at, tile), there[k]->at(), to});
      gather_here(pieces[k].from, source[k], to, expected, element);
    }
    const block target(*a, expected.size());
    put(*a, 0, target.at(), before);
    gather(*a, 0, kernels::gather, kernels::gathers, pieces, target.at(), element);
    ASSERT_EQ(content<std::uint8_t>(*a, target.at(), expected.size()), expected)
        << "round " << round << ", rank " << rank << ", " << n << " tiles, elements of " << element;
  }
}

// Grids of CUDA end at 65,535 groups in all dimensions but one; groups had 128 work-items.
TEST_P(conformance, gathers_may_be_long_in_every_dimension) {
  const auto a = open();
  for (const index_t n : {65'534, 65'535, 65'536, 65'537, 131'073})
    for (int d = 0; d < troupe::rank_max; ++d)
      for (const index_t beside : {1, 3}) {
        point size{1, 1, 1, 1}, low{};
        size[d] = n;
        size[(d + 1) % troupe::rank_max] = beside;
        const gather_side from = side(low, size);
        point wide = size;
        for (int k = 0; k < troupe::rank_max; ++k)
          if (wide[k] > 1) low[k] = -2, wide[k] += 4;
        SCOPED_TRACE(std::to_string(n) + " in dimension " + std::to_string(d) + ", " + std::to_string(beside) +
                     " beside");
        ASSERT_NO_FATAL_FAILURE(compare(*a, from, volume(size), side(low, wide), volume(wide), 2));
      }
}

TEST_P(conformance, gathers_may_have_more_elements_than_a_grid_has_groups) {
  const auto a = open();
  const index_t groups = 65'536 * 128;
  for (const point& size : {point{groups + 1, 1, 1, 1}, point{4096, 2050, 1, 1}, point{65'600, 4, 8, 4}}) {
    point wide = size, low{};
    low[0] = -1;
    wide[0] += 2;
    SCOPED_TRACE(std::to_string(size[0]));
    ASSERT_NO_FATAL_FAILURE(compare(*a, side({}, size), volume(size), side(low, wide), volume(wide), 1));
  }
}

// Boxes that are large enough are copied, but for their border. Too much for Oclgrind, which takes what "agrees".
TEST_P(conformance, gathers_that_are_large_in_every_dimension_are_as_on_the_host) {
  const auto a = open();
  for (const point& size :
       {point{500'000, 1, 1, 1}, point{700, 301, 1, 1}, point{70, 61, 52, 1}, point{23, 22, 21, 20}}) {
    point wide = size, low{}, inside{};
    for (int d = 0; d < troupe::rank_max; ++d)
      if (size[d] > 1) low[d] = -1 - d, wide[d] += 3 + d, inside[d] = d;
    SCOPED_TRACE(std::to_string(size[0]));
    ASSERT_NO_FATAL_FAILURE(compare(*a, side({}, size), volume(size), side(low, wide), volume(wide), 3));
    // Some of the tile, and all of the box beyond one of its edges.
    gather_side part = side({}, size);
    part.lo = inside;
    for (int d = 0; d < troupe::rank_max; ++d) part.offset += inside[d] * part.stride[d];
    ASSERT_NO_FATAL_FAILURE(compare(*a, part, volume(size), side(low, wide), volume(wide), 4));
    low[0] = size[0] + 5;
    ASSERT_NO_FATAL_FAILURE(compare(*a, part, volume(size), side(low, wide), volume(wide), 1));
  }
}

// A box without border that would be thousands of copies: one launch.
TEST_P(conformance, gathers_of_many_short_rows_agree_with_the_host) {
  const auto a = open();
  const point size{60, 50, 3, 2}, part{58, 47, 2, 1}, low{1, 2, 1, 0};
  gather_side from = side(low, part);
  from.stride = packed(size);
  for (int d = 0; d < troupe::rank_max; ++d) from.offset += low[d] * from.stride[d];
  compare(*a, from, volume(size), side(low, part), volume(part), 4);
}

// The last blocks of boxes of about 2^31 and of 2^33 elements, in memory that holds no more than these: the box's start
// would lie before it.
TEST_P(conformance, gathers_count_beyond_two_to_the_thirty_one) {
  const auto a = open();
  const std::size_t room = std::size_t{1} << 16;
  const auto source = random_bytes(16, 3);
  const block tile(*a, source.size()), box(*a, room);
  put(*a, 0, tile.at(), source);
  for (const index_t n : {(index_t{1} << 31) - 1, index_t{1} << 31, (index_t{1} << 31) + 4097, (index_t{1} << 33) + 5})
    for (int d = 0; d < troupe::rank_max; ++d) {
      point size{1, 1, 1, 1}, few{1, 1, 1, 1};
      size[d] = n;
      few[d] = 16;
      gather_side from = side({}, few), to = side({}, size);
      // The tile is the end of the box, but for three elements of border.
      from.lo[d] = n - 19;
      from.hi[d] = n - 3;
      to.offset = static_cast<index_t>(room) - n;
      const gather_plan plan(from, to, 1);
      const std::vector<std::uint8_t> before(room, 0xAA);
      put(*a, 0, box.at(), before);
      const kernel_id k = a->load({"gather", kernels::gather, plan.entry()});
      plan.launch(*a, 0, k, tile.at(), box.at(), plan.blocks() - 20, plan.blocks());
      const auto out = content<std::uint8_t>(*a, box.at(), room);
      const auto written = static_cast<std::size_t>(n - (plan.blocks() - 20) * 2048);
      for (std::size_t i = 0; i < room; ++i) {
        const index_t at = n - static_cast<index_t>(room) + static_cast<index_t>(i);
        const std::uint8_t expected =
            room - i > written ? 0xAA : source[static_cast<std::size_t>(std::clamp<index_t>(at - (n - 19), 0, 15))];
        ASSERT_EQ(out[i], expected) << at << " of " << n << ", dimension " << d;
      }
    }
}

}  // namespace

}  // namespace conformance_suite
