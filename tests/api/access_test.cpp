// What this file is for: what views show of an array, and the errors of accesses that are wrong.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::error_of;
using troupe::index_t;

TEST(reading, a_box_that_nobody_wrote_is_an_error_naming_array_and_box) {
  runtime rt(options{.threads = 1});
  auto a = rt.array<int>({10}, tiles(5), "temperature");
  rt.spawn([](view<int, 1> v) { v(0) = 1; }, write(a.sub({{0}, {5}}))).get();
  std::atomic<bool> ran{false};
  const auto e = error_of([&] { rt.spawn([&](view<const int, 1>) { ran = true; }, read(a.sub({{5}, {10}}))).get(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::uninitialized_read);
  EXPECT_TRUE(e->says("temperature") && e->says("[5,10)")) << e->text;
  EXPECT_FALSE(ran);
}

TEST(reading, a_part_that_nobody_wrote_of_a_tile_is_an_error_too) {
  runtime rt(options{.threads = 1});
  auto a = rt.array<int>({10}, tiles(10), "pressure");
  rt.spawn(
      [](view<int, 1> v) {
        for (index_t i = 0; i < 4; ++i) v(i) = 1;
      },
      write(a.sub({{0}, {4}})));
  EXPECT_EQ(rt.spawn([](view<const int, 1> v) { return v(3); }, read(a.sub({{0}, {4}}))).get(), 1);
  const auto e = error_of([&] { rt.spawn([](view<const int, 1>) {}, read(a.sub({{2}, {6}}))).get(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::uninitialized_read);
  EXPECT_TRUE(e->says("pressure")) << e->text;
}

TEST(reading, on_the_host_or_updating_what_nobody_wrote_is_an_error) {
  runtime rt(options{.threads = 1});
  auto a = rt.array<int>({10}, tiles(5), "density");
  const auto on_host = error_of([&] { a.read(); });
  ASSERT_TRUE(on_host);
  EXPECT_EQ(on_host->code, errc::uninitialized_read);
  EXPECT_TRUE(on_host->says("density")) << on_host->text;
  EXPECT_EQ(code_of([&] { rt.spawn([](view<int, 1>) {}, update(a)).get(); }), errc::uninitialized_read);
}

TEST(writing, one_element_by_two_chunks_is_an_error_naming_both_boxes) {
  runtime rt(options{.threads = 1});
  auto a = rt.array<int>({6}, tiles(6), "target");
  std::atomic<bool> ran{false};
  const auto e = error_of([&] {
    rt.for_each(
        grid(2).chunks(1), [&](view<int, 1>) { ran = true; }, write(a, [](const box<1>& chunk, const extent<1>&) {
          return box<1>{{chunk.lo[0] * 2}, {chunk.lo[0] * 2 + 3}};
        }));
  });
  ASSERT_TRUE(e);
  EXPECT_FALSE(e->from_task);
  EXPECT_EQ(e->code, errc::overlapping_write);
  EXPECT_TRUE(e->says("target") && e->says("[0,3)") && e->says("[2,5)")) << e->text;
  rt.wait_all();
  EXPECT_FALSE(ran);
}

TEST(writing, everything_by_every_chunk_is_an_error_and_by_one_chunk_is_not) {
  runtime rt(options{.threads = 1});
  auto a = rt.array<int>({6}, tiles(3), "target");
  const auto body = [](view<int, 1> v) {
    for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) = 2;
  };
  EXPECT_EQ(code_of([&] { rt.for_each(grid(4).chunks(2), body, write(a, all{})); }), errc::overlapping_write);
  EXPECT_EQ(code_of([&] { rt.for_each(grid(4).chunks(4), body, write(a, all{})).get(); }), std::nullopt);
  EXPECT_EQ(a.read()(5), 2);
}

TEST(accessing, beyond_the_array_with_a_fixed_box_is_an_error) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<int>({10}, tiles(5), 0, "a");
  const auto e = error_of([&] {
    rt.for_each(
        grid(4), [](view<const int, 1>) {}, read(a, fixed<1>{{{8}, {12}}}));
  });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::out_of_bounds);
  EXPECT_TRUE(e->says("'a'")) << e->text;
}

TEST(accessing, beyond_the_array_with_a_plain_function_is_an_error) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<int>({10}, tiles(5), 0, "a");
  const auto shifted = [](const box<1>& c, const extent<1>&) { return box<1>{{c.lo[0] + 1}, {c.hi[0] + 1}}; };
  EXPECT_EQ(code_of([&] {
              rt.for_each(
                  grid(10), [](view<const int, 1>) {}, read(a, shifted));
            }),
            errc::out_of_bounds);
  EXPECT_EQ(code_of([&] {
              rt.for_each(
                    grid(9), [](view<const int, 1>) {}, read(a, shifted))
                  .get();
            }),
            std::nullopt);
}

TEST(accessing, a_sub_array_that_leaves_the_array_is_an_error) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<int>({10, 10}, tiles(5, 5), 0, "a");
  EXPECT_EQ(code_of([&] { a.sub({{0, 5}, {5, 11}}); }), errc::out_of_bounds);
  EXPECT_EQ(code_of([&] { a.sub({{2, 2}, {2, 3}}); }), errc::out_of_bounds);
}

TEST(accessing, an_element_outside_the_declared_box_is_caught_by_the_checked_view) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<int>({10}, tiles(5), 0, "grid");
  auto f = rt.spawn([](view<const int, 1> v) { return v.at(4); }, read(a.sub({{0}, {4}})));
  const auto e = error_of([&] { f.get(); });
  ASSERT_TRUE(e && e->from_task);
  EXPECT_TRUE(e->says("grid") && e->says("[0,4)")) << e->text;
  try {
    f.get();
  } catch (const task_failed& failure) {
    EXPECT_EQ(code_of([&] { failure.rethrow_cause(); }), errc::out_of_bounds);
  }
}

// ---- what windows show ----------------------------------------------------------------------------------------------

TEST(window, without_a_rule_ends_at_the_edge) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<int>({10}, tiles(4), 0, "a");
  std::mutex lock;
  std::vector<box<1>> seen;
  rt.for_each(
        grid(10).chunks(4),
        [&](view<const int, 1> v) {
          const std::lock_guard hold(lock);
          seen.push_back(v.bounds());
        },
        read(a, window(2)))
      .get();
  std::sort(seen.begin(), seen.end(), [](const auto& x, const auto& y) { return x.lo < y.lo; });
  EXPECT_EQ(seen, (std::vector<box<1>>{{{0}, {6}}, {{2}, {10}}, {{6}, {10}}}));
}

TEST(window, shows_its_coordinates_beyond_the_edge) {
  runtime rt(options{.threads = 1});
  auto a = rt.adopt(std::vector<int>{10, 11, 12}, {3}, tiles(2), "a");
  const auto shown = [&](const window_mapper<1>& w) {
    std::vector<int> values;
    rt.for_each(
          grid(3).chunks(3),
          [&](view<const int, 1> v) {
            EXPECT_EQ(v.lo(0), -2);
            EXPECT_EQ(v.hi(0), 5);
            for (index_t i = -2; i < 5; ++i) values.push_back(v.at(i));
          },
          read(a, w))
        .get();
    return values;
  };
  EXPECT_EQ(shown(window(2).clamp()), (std::vector<int>{10, 10, 10, 11, 12, 12, 12}));
  EXPECT_EQ(shown(window(2).wrap()), (std::vector<int>{11, 12, 10, 11, 12, 10, 11}));
  EXPECT_EQ(shown(window(2).fill(-5)), (std::vector<int>{-5, -5, 10, 11, 12, -5, -5}));
}

TEST(window, of_a_sub_array_has_its_borders_at_the_edges_of_the_part) {
  runtime rt(options{.threads = 1});
  auto a = rt.adopt(std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}, {8}, tiles(3), "a");
  auto part = a.sub({{2}, {5}});
  auto sum = rt.array<int>({3}, tiles(1), "sum");
  rt.for_each(
      grid(3),
      [](view<const int, 1> from, view<int, 1> to) {
        for (index_t i = to.lo(0); i < to.hi(0); ++i) to(i) = from(i - 1) * 100 + from(i) * 10 + from(i + 1);
      },
      read(part, window(1).clamp()), write(sum));
  const auto seen = sum.read();
  EXPECT_EQ(seen(0), 223);
  EXPECT_EQ(seen(1), 234);
  EXPECT_EQ(seen(2), 344);
}

TEST(window, with_a_fill_of_another_type_is_an_error) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<int>({3}, tiles(3), 0, "a");
  EXPECT_EQ(code_of([&] {
              rt.for_each(
                  grid(3), [](view<const int, 1>) {}, read(a, window_mapper<1>(window(1).fill(1.0))));
            }),
            errc::bad_argument);
}

TEST(slice, gives_full_rows_or_columns) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  const index_t n = 7, m = 5, depth = 6;
  std::vector<int> left, right;
  for (index_t i = 0; i < n * depth; ++i) left.push_back(static_cast<int>(i % 11) - 5);
  for (index_t i = 0; i < depth * m; ++i) right.push_back(static_cast<int>(i % 7) - 3);
  auto a = rt.adopt(left, {n, depth}, tiles(2, 2), "a");
  auto b = rt.adopt(right, {depth, m}, tiles(3, 2), "b");
  auto c = rt.array<int>({n, m}, tiles(3, 2), "c");
  rt.for_each(
      grid(n, m),
      [](view<const int, 2> x, view<const int, 2> y, view<int, 2> to) {
        for (index_t i = to.lo(0); i < to.hi(0); ++i)
          for (index_t j = to.lo(1); j < to.hi(1); ++j) {
            to(i, j) = 0;
            for (index_t k = 0; k < x.hi(1); ++k) to(i, j) += x.at(i, k) * y.at(k, j);
          }
      },
      read(a, slice(1)), read(b, slice(0)), write(c));
  const auto seen = c.read();
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < m; ++j) {
      int sum = 0;
      for (index_t k = 0; k < depth; ++k)
        sum += left[static_cast<std::size_t>(i * depth + k)] * right[static_cast<std::size_t>(k * m + j)];
      ASSERT_EQ(seen(i, j), sum);
    }
}

TEST(view, of_a_whole_tile_is_contiguous_and_not_copied) {
  runtime rt(options{.threads = 1});
  std::vector<double> memory(16, 0.0);
  auto a = rt.borrow(std::span<double>(memory), {4, 4}, tiles(4, 4), "a");
  EXPECT_EQ(rt.spawn([](view<double, 2> v) { return v.data(); }, update(a)).get(), memory.data());
  auto packed = rt.filled<double>({8, 8}, tiles(4, 4), 1.0, "packed");
  auto stride = rt.spawn([](view<const double, 2> v) { return v.stride(0) * 10 + v.stride(1); },
                         read(packed.sub({{4, 0}, {8, 4}})));
  EXPECT_EQ(stride.get(), 41);
}

TEST(view, of_three_and_four_dimensions_sees_every_element) {
  runtime rt(options{.threads = 2, .core_groups = 2});
  auto a = rt.array<int>({3, 4, 5}, tiles(2, 3, 2), "a");
  rt.for_each(
      grid(3, 4, 5),
      [](view<int, 3> v) {
        for (index_t i = v.lo(0); i < v.hi(0); ++i)
          for (index_t j = v.lo(1); j < v.hi(1); ++j)
            for (index_t k = v.lo(2); k < v.hi(2); ++k) v.at(i, j, k) = static_cast<int>(i * 100 + j * 10 + k);
      },
      write(a));
  const auto seen = a.read();
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 4; ++j)
      for (index_t k = 0; k < 5; ++k) ASSERT_EQ(seen(i, j, k), i * 100 + j * 10 + k);
  auto b = rt.filled<int>({2, 3, 2, 3}, tiles(1, 2, 1, 2), 1, "b");
  auto total = rt.spawn(
      [](view<const int, 4> v) {
        int sum = 0;
        for (index_t i = 0; i < 2; ++i)
          for (index_t j = 0; j < 3; ++j)
            for (index_t k = 0; k < 2; ++k)
              for (index_t l = 0; l < 3; ++l) sum += v.at(i, j, k, l);
        return sum;
      },
      read(b));
  EXPECT_EQ(total.get(), 36);
}

TEST(for_each, over_nothing_is_done_at_once) {
  runtime rt(options{.threads = 1});
  std::atomic<int> ran{0};
  auto done = rt.for_each(grid(0), [&] { ++ran; });
  EXPECT_NO_THROW(done.get());
  EXPECT_EQ(ran, 0);
}

TEST(for_each, of_a_negative_size_is_an_error) {
  runtime rt(options{.threads = 1});
  EXPECT_EQ(code_of([&] { rt.for_each(grid(-1), [] {}); }), errc::bad_argument);
  EXPECT_EQ(code_of([&] { rt.for_each(grid(4).chunks(-2), [] {}); }), errc::bad_argument);
}

TEST(append, says_that_it_is_not_available_yet) {
  runtime rt(options{.threads = 1});
  auto a = rt.array<int>({10}, tiles(10), "a");
  EXPECT_EQ(code_of([&] { rt.spawn([](view<int, 1>) {}, append(a)); }), errc::not_supported);
}

}  // namespace
