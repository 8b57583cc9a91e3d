// What this file is for: checks histograms, and reductions in general, against plain serial loops.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "device_fixture.hpp"

namespace {

using namespace troupe;
using troupe::index_t;

std::vector<std::uint8_t> random_bytes(index_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> v(static_cast<std::size_t>(count));
  for (auto& b : v) b = static_cast<std::uint8_t>(random());
  return v;
}

std::vector<std::uint64_t> counted(const std::vector<std::uint8_t>& data) {
  std::vector<std::uint64_t> bins(256);
  for (std::uint8_t b : data) ++bins[b];
  return bins;
}

std::vector<std::uint64_t> contents(const array<std::uint64_t, 1>& a) {
  const auto seen = a.read();
  std::vector<std::uint64_t> v;
  for (index_t i = 0; i < a.size(0); ++i) v.push_back(seen(i));
  return v;
}

struct picture {
  index_t height, width, tile_height, tile_width;
  int threads, core_groups;
};

class histogram_of : public testing::TestWithParam<picture> {};

TEST_P(histogram_of, bytes_counts_every_one_of_them) {
  const picture& p = GetParam();
  runtime rt(options{.threads = p.threads, .core_groups = p.core_groups});
  const auto data = random_bytes(p.height * p.width, 3);
  auto image = rt.adopt(data, {p.height, p.width}, tiles(p.tile_height, p.tile_width), "image");
  auto bins = rt.filled<std::uint64_t>({256}, tiles(256), 0, "bins");
  algorithms::histogram(rt, image, bins);
  EXPECT_EQ(contents(bins), counted(data));
}

TEST_P(histogram_of, bytes_adds_up_over_repeated_calls_and_reads) {
  const picture& p = GetParam();
  runtime rt(options{.threads = p.threads, .core_groups = p.core_groups});
  const auto data = random_bytes(p.height * p.width, 4);
  auto image = rt.adopt(data, {p.height, p.width}, tiles(p.tile_height, p.tile_width), "image");
  auto bins = rt.filled<std::uint64_t>({256}, tiles(100), 5, "bins");
  std::vector<std::uint64_t> expected(256, 5);
  const auto once = counted(data);
  for (int round = 0; round < 3; ++round) {
    for (int call = 0; call <= round; ++call) {
      algorithms::histogram(rt, image, bins);
      for (std::size_t i = 0; i < 256; ++i) expected[i] += once[i];
    }
    ASSERT_EQ(contents(bins), expected) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(pictures, histogram_of,
                         testing::Values(picture{1, 1, 1, 1, 1, 1}, picture{1, 1, 64, 64, 2, 2},
                                         picture{67, 71, 10, 16, 1, 1}, picture{67, 71, 10, 16, 4, 2},
                                         picture{64, 64, 16, 16, 2, 2}, picture{1, 1009, 1, 100, 2, 1},
                                         picture{300, 7, 1, 7, 4, 1}),
                         [](const auto& shown) {
                           const picture& p = shown.param;
                           return std::to_string(p.height) + "x" + std::to_string(p.width) + "_tile" +
                                  std::to_string(p.tile_height) + "x" + std::to_string(p.tile_width) + "_threads" +
                                  std::to_string(p.threads) + "_groups" + std::to_string(p.core_groups);
                         });

TEST(histogram, of_one_dimensional_bytes_is_exact) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  const auto data = random_bytes(10'007, 9);
  auto line = rt.adopt(data, {10'007}, tiles(512), "line");
  auto bins = rt.filled<std::uint64_t>({256}, tiles(256), 0, "bins");
  algorithms::histogram(rt, line, bins).get();
  EXPECT_EQ(contents(bins), counted(data));
}

void expect_limits_where_they_belong(runtime& rt, const scope& where) {
  const double below = std::nextafter(4.0, 0.0);
  std::vector<double> data{0,
                           0.999,
                           1,
                           2.5,
                           3,
                           below,
                           4,
                           -0.001,
                           std::nan(""),
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()};
  auto line = rt.adopt(data, {static_cast<index_t>(data.size())}, tiles(3), "line");
  auto bins = rt.filled<std::uint64_t>({4}, tiles(4), 0, "bins");
  algorithms::histogram(rt, line, 0.0, 4.0, bins, where);
  EXPECT_EQ(contents(bins), (std::vector<std::uint64_t>{2, 1, 1, 2}));
}

TEST(histogram, of_numbers_puts_limits_where_they_belong_and_leaves_out_the_rest) {
  runtime rt(options{.threads = 2});
  expect_limits_where_they_belong(rt, {});
}

void expect_the_same_for_tiles(runtime& rt, index_t tile, index_t count, const scope& where) {
  std::mt19937 random(17);
  std::normal_distribution<double> value(0, 1);
  std::vector<double> data(53 * 59);
  for (double& x : data) x = value(random);
  std::vector<std::uint64_t> expected(static_cast<std::size_t>(count));
  for (double x : data)
    if (x >= -3 && x < 3)
      ++expected[std::min(static_cast<std::size_t>((x + 3) * (static_cast<double>(count) / 6.0)), expected.size() - 1)];
  auto field = rt.adopt(data, {53, 59}, tiles(tile, tile), "field");
  auto bins = rt.filled<std::uint64_t>({count}, tiles(count), 0, "bins");
  algorithms::histogram(rt, field, -3.0, 3.0, bins, where);
  ASSERT_EQ(contents(bins), expected) << "tile " << tile << ", bins " << count;
}

TEST(histogram, of_numbers_is_the_same_for_every_tiling) {
  runtime rt(options{.threads = 4, .core_groups = 2});
  for (index_t tile : {1, 7, 16, 53, 100}) expect_the_same_for_tiles(rt, tile, 30, {});
}

class histogram_on : public troupe_test::device_fixture {};

TEST_P(histogram_on, counts_every_byte) {
  const auto data = random_bytes(67 * 71, 3);
  auto image = rt().adopt(data, {67, 71}, tiles(20, 64), "image");
  auto line = rt().adopt(data, {67 * 71}, tiles(1000), "line");
  auto bins = rt().filled<std::uint64_t>({256}, tiles(100), 5, "bins");
  algorithms::histogram(rt(), image, bins, where());
  algorithms::histogram(rt(), line, bins, where());
  auto expected = counted(data);
  for (auto& n : expected) n = 5 + 2 * n;
  EXPECT_EQ(contents(bins), expected);
  expect_tasks_on_device(8 + 5);
}

TEST_P(histogram_on, puts_limits_where_they_belong_and_leaves_out_the_rest) {
  run_until_shared([&] { expect_limits_where_they_belong(rt(), where()); });
  expect_tasks_on_device(4);
}

TEST_P(histogram_on, counts_into_any_number_of_bins) {
  for (const index_t bins : {1, 30, 5000}) expect_the_same_for_tiles(rt(), 40, bins, where());  // above 2048 in parts
  expect_tasks_on_device(3 * 4);
}

INSTANTIATE_TEST_SUITE_P(devices, histogram_on, troupe_test::every_place(), troupe_test::name_of_place);

TEST(histogram, refuses_wrong_bins_and_limits) {
  runtime rt(options{.threads = 1});
  auto bytes = rt.filled<std::uint8_t>({10}, tiles(4), 1);
  auto doubles = rt.filled<double>({10}, tiles(4), 1.0);
  auto bins = rt.filled<std::uint64_t>({255}, tiles(255), 0);
  const auto refused = [](auto call) {
    try {
      call();
    } catch (const error& e) {
      return e.code() == errc::bad_argument;
    }
    return false;
  };
  EXPECT_TRUE(refused([&] { algorithms::histogram(rt, bytes, bins); }));
  EXPECT_TRUE(refused([&] { algorithms::histogram(rt, doubles, 1.0, 1.0, bins); }));
  EXPECT_TRUE(refused([&] { algorithms::histogram(rt, doubles, std::nan(""), 1.0, bins); }));
  EXPECT_TRUE(refused([&] { algorithms::histogram(rt, doubles, 0.0, 1.0, array<std::uint64_t, 1>()); }));
}

// ---- reductions of other operators and shapes -----------------------------------------------------------------------

struct larger {
  int operator()(int a, int b) const { return std::max(a, b); }
};

TEST(reduction, with_an_operator_of_the_caller_finds_the_maximum) {
  runtime rt(options{.threads = 4, .core_groups = 2});
  std::vector<int> data;
  for (int i = 0; i < 5000; ++i) data.push_back(static_cast<int>((i * 7919L) % 100'003));
  auto line = rt.adopt(data, {5000}, tiles(37), "line");
  auto best = rt.filled<int>({1}, tiles(1), -1, "best");
  rt.for_each(
      grid(5000).chunks(37),
      [](view<const int, 1> from, view<int, 1> to) {
        for (index_t i = from.lo(0); i < from.hi(0); ++i) to(0) = std::max(to(0), from(i));
      },
      read(line), reduce(best, larger{}, std::numeric_limits<int>::min()));
  EXPECT_EQ(best.read()(0), *std::max_element(data.begin(), data.end()));
}

TEST(reduction, keeps_what_the_array_held_where_that_wins) {
  runtime rt(options{.threads = 2});
  auto best = rt.filled<int>({3}, tiles(3), 50, "best");
  for (int value : {10, 70, 20})
    rt.spawn([](view<int, 1> to, int v) { to(1) = std::max(to(1), v); },
             reduce(best, larger{}, std::numeric_limits<int>::min()), value);
  const auto seen = best.read();
  EXPECT_EQ(seen(0), 50);
  EXPECT_EQ(seen(1), 70);
  EXPECT_EQ(seen(2), 50);
}

TEST(reduction, into_a_matrix_of_several_tiles_adds_element_by_element) {
  runtime rt(options{.threads = 4, .core_groups = 2});
  auto sums = rt.filled<std::int64_t>({9, 7}, tiles(4, 3), 1000, "sums");
  for (int round = 0; round < 3; ++round)
    rt.for_each(
        grid(40).chunks(1),
        [](view<std::int64_t, 2> to) {
          for (index_t i = 0; i < 9; ++i)
            for (index_t j = 0; j < 7; ++j) to(i, j) += i * 10 + j;
        },
        reduce(sums));
  const auto seen = sums.read();
  for (index_t i = 0; i < 9; ++i)
    for (index_t j = 0; j < 7; ++j) ASSERT_EQ(seen(i, j), 1000 + 3 * 40 * (i * 10 + j));
}

TEST(reduction, into_a_sub_array_leaves_the_rest_alone) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  auto a = rt.filled<std::int64_t>({20}, tiles(6), 1, "a");
  auto middle = a.sub({{4}, {15}});
  rt.for_each(
      grid(8).chunks(1),
      [](view<std::int64_t, 1> to) {
        for (index_t i = 0; i < 11; ++i) to(i) += i;
      },
      reduce(middle));
  const auto seen = a.read();
  for (index_t i = 0; i < 20; ++i) ASSERT_EQ(seen(i), i < 4 || i >= 15 ? 1 : 1 + 8 * (i - 4)) << i;
}

TEST(reduction, between_writes_and_updates_keeps_program_order) {
  runtime rt(options{.threads = 4, .core_groups = 2});
  auto a = rt.filled<std::int64_t>({5}, tiles(2), 0, "a");
  std::int64_t expected = 0;
  for (int round = 1; round <= 20; ++round) {
    for (int k = 0; k < 4; ++k) rt.spawn([](view<std::int64_t, 1> to) { to(3) += 1; }, reduce(a));
    expected += 4;
    rt.spawn([round](view<std::int64_t, 1> to) { to(3) = to(3) * 3 + round; }, update(a));
    expected = expected * 3 + round;
    expected %= 1'000'003;
    rt.spawn([](view<std::int64_t, 1> to) { to(3) %= 1'000'003; }, update(a));
  }
  EXPECT_EQ(a.read()(3), expected);
}

}  // namespace
