// What this file is for: copies and fills of the GPU backend, and how few calls they take.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "devices/gpu/copy_plan.hpp"
#include "gpu_suite.hpp"

namespace {

using namespace gpu_suite;
using four = std::array<index_t, troupe::rank_max>;

TEST_F(gpu_sim, copies_strided_blocks_of_up_to_4_dimensions_as_a_loop_over_elements_does) {
  auto& a = device();
  std::mt19937 random(7);
  const std::size_t room = 4096;
  for (int round = 0; round < 200; ++round) {
    four n, ts, fs;
    for (auto& c : n) c = random() % 3 == 0 ? 1 : 1 + static_cast<index_t>(random() % 5);
    for (auto* s : {&ts, &fs}) {
      index_t step = random() % 4 == 0 ? 2 : 1;
      for (int d = 3; d >= 0; --d) {
        (*s)[static_cast<std::size_t>(d)] = step;
        step *= n[static_cast<std::size_t>(d)] + static_cast<index_t>(random() % 2);
      }
    }
    std::vector<std::int32_t> from(room), back(room, -1), expected(room, -1);
    std::iota(from.begin(), from.end(), round * 10000);
    for (index_t i = 0; i < n[0]; ++i)
      for (index_t j = 0; j < n[1]; ++j)
        for (index_t k = 0; k < n[2]; ++k)
          for (index_t l = 0; l < n[3]; ++l)
            expected[static_cast<std::size_t>(i * ts[0] + j * ts[1] + k * ts[2] + l * ts[3])] =
                from[static_cast<std::size_t>(i * fs[0] + j * fs[1] + k * fs[2] + l * fs[3])];
    // In strided, within the device strided, out strided: each step lays the elements out another way.
    const four dense{n[1] * n[2] * n[3], n[2] * n[3], n[3], 1};
    void* one = a.allocate(0, room * 4);
    void* two = a.allocate(0, room * 4);
    a.copy_in(0, {one, 64}, dense, reinterpret_cast<const std::byte*>(from.data()), fs, n, 4);
    a.copy(0, {two, 0}, ts, {one, 64}, dense, n, 4);
    a.copy_out(0, reinterpret_cast<std::byte*>(back.data()), ts, {two, 0}, ts, n, 4);
    finish(a, 0);
    ASSERT_EQ(back, expected) << "round " << round;
    a.deallocate(0, one);
    a.deallocate(0, two);
  }
}

TEST_F(gpu_sim, nothing_is_copied_where_a_count_is_zero) {
  auto& a = device();
  EXPECT_NO_THROW(a.copy_in(0, {nullptr, 0}, line, nullptr, line, {4, 0, 4, 4}, 8));
  finish(a, 0);
}

TEST_F(gpu_sim, fills_with_elements_of_every_size) {
  auto& a = device();
  for (std::size_t element = 1; element <= 16; ++element)
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{1000}}) {
      std::vector<std::uint8_t> v(element), expected;
      std::iota(v.begin(), v.end(), static_cast<std::uint8_t>(1));
      for (std::size_t i = 0; i < count; ++i) expected.insert(expected.end(), v.begin(), v.end());
      void* p = a.allocate(0, element * count);
      a.fill(0, {p, 0}, reinterpret_cast<const std::byte*>(v.data()), element, count);
      std::fill(v.begin(), v.end(), std::uint8_t{0});  // read at once
      ASSERT_EQ(get<std::uint8_t>(p, element * count), expected) << element << " x " << count;
      a.deallocate(0, p);
    }
}

TEST(copy_plan, what_lies_together_is_one_row_and_the_longest_dimension_is_left_to_the_device) {
  const auto blocks = [](const gpu::copy_plan& p) {
    int n = 0;
    p.for_each_block([&](index_t, index_t) { ++n; });
    return n;
  };
  const strides dense{60, 20, 5, 1}, apart{120, 40, 10, 1}, columns{60, 20, 5, 2};
  auto p = gpu::plan_copy(dense, dense, {2, 3, 4, 5}, 8, 1 << 20);
  EXPECT_EQ(p.width, 2 * 3 * 4 * 5 * 8);
  EXPECT_EQ(p.rows.count, 1);
  EXPECT_EQ(blocks(p), 1);
  p = gpu::plan_copy(dense, apart, {2, 3, 4, 5}, 8, 1 << 20);  // rows of 5 at pitches of 5 and 10, all at one distance
  EXPECT_EQ(p.width, 5 * 8);
  EXPECT_EQ(p.rows.count, 2 * 3 * 4);
  EXPECT_EQ(p.rows.from, 10 * 8);
  EXPECT_EQ(blocks(p), 1);
  p = gpu::plan_copy(dense, columns, {1, 1, 1, 5}, 8, 1 << 20);
  EXPECT_EQ(p.width, 8);
  EXPECT_EQ(p.rows.count, 5);
  p = gpu::plan_copy(dense, {7, 0, 0, 0}, {2, 1, 1, 5}, 8, 1 << 20);  // one element, five times: no pitch
  EXPECT_EQ(p.rows.count, 2);
  EXPECT_EQ(blocks(p), 5);
  EXPECT_EQ(blocks(gpu::plan_copy(dense, apart, {2, 3, 4, 5}, 8, 64)), 24);  // pitches beyond what the device takes
  EXPECT_EQ(gpu::plan_copy(dense, dense, {2, 0, 4, 5}, 8, 1 << 20).width, 0);
}

}  // namespace
