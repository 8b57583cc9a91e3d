// What this file is for: lists of arrays and futures as arguments, whose length is known at run time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::error_of;
using troupe::index_t;

std::vector<array<int, 1>> numbered(runtime& rt, int count, index_t size = 4) {
  std::vector<array<int, 1>> list;
  for (int i = 0; i < count; ++i) {
    list.push_back(rt.array<int>({size}, "part " + std::to_string(i)));
    rt.spawn([i](view<int, 1> v) { std::fill_n(v.data(), v.size(0), i); }, write(list.back()));
  }
  return list;
}

int value_of(array<int, 1>& a) { return a.read()(0); }

// As long as fits where they are kept without an allocation, and longer; empty.
TEST(access_lists, give_the_views_of_all_arrays_in_their_order) {
  runtime rt(options{.threads = 2});
  for (int count : {0, 1, 2, 3, 4, 15, 16, 17, 33, 200}) {
    auto parts = numbered(rt, count);
    auto sum = rt.array<int>({1});
    rt.spawn(
        [count](views<const int, 1> in, view<int, 1> out) {
          ASSERT_EQ(in.size(), static_cast<std::size_t>(count));
          EXPECT_EQ(in.empty(), count == 0);
          for (int i = 0; i < count; ++i) EXPECT_EQ(in[static_cast<std::size_t>(i)](3), i);
          out(0) = 0;
          for (const view<const int, 1>& v : in) out(0) += v(0);
        },
        read_all(parts), write(sum));
    EXPECT_EQ(value_of(sum), count * (count - 1) / 2) << count;
  }
}

TEST(access_lists, are_spans_of_views_where_a_body_wants_that) {
  runtime rt(options{.threads = 1});
  auto parts = numbered(rt, 5);
  const int sum =
      rt.spawn(
            [](std::span<const view<const int, 1>> in) {
              return std::accumulate(in.begin(), in.end(), 0, [](int n, const auto& v) { return n + v(0); });
            },
            read_all(parts))
          .get();
  EXPECT_EQ(sum, 10);
  static_assert(std::ranges::contiguous_range<views<const int, 1>>);
  static_assert(std::ranges::random_access_range<values<int>>);
}

TEST(access_lists, stand_among_other_arguments) {
  runtime rt(options{.threads = 2});
  auto first = numbered(rt, 3), second = numbered(rt, 20);
  auto one = rt.filled<int>({1}, tiles(1), 7);
  auto seven = rt.spawn([] { return 70; });
  const auto sum_of = [](const auto& list) {
    int n = 0;
    for (const auto& v : list) n += v(0);
    return n;
  };
  const int sum = rt.spawn(
                        [&](task_context& c, auto a, const int& scalar, view<const int, 1> v, const int& f, auto b) {
                          EXPECT_EQ(c.attempt(), 1);
                          return sum_of(a) + scalar + v(0) + f + sum_of(b);
                        },
                        read_all(first), 1000, read(one), seven, read_all(second))
                      .get();
  EXPECT_EQ(sum, 3 + 1000 + 7 + 70 + 190);
}

TEST(access_lists, are_ordered_as_single_accesses_are) {
  runtime rt(options{.threads = 4});
  constexpr int count = 19, steps = 60;
  std::vector<array<int, 1>> cells;
  for (int i = 0; i < count; ++i) cells.push_back(rt.filled<int>({1}, tiles(1), i));
  // A step gives every cell the sum of all cells, modulo a prime, plus its number.
  std::vector<int> want(count);
  std::iota(want.begin(), want.end(), 0);
  for (int s = 0; s < steps; ++s) {
    std::vector<array<int, 1>> next;
    for (int i = 0; i < count; ++i) {
      next.push_back(rt.array<int>({1}));
      rt.spawn(
          [i](views<const int, 1> in, view<int, 1> out) {
            int n = i;
            for (const auto& v : in) n += v(0);
            out(0) = n % 9973;
          },
          read_all(cells), write(next.back()));
    }
    cells = next;
    const int sum = std::accumulate(want.begin(), want.end(), 0);
    for (int i = 0; i < count; ++i) want[static_cast<std::size_t>(i)] = (sum + i) % 9973;
  }
  for (int i = 0; i < count; ++i)
    EXPECT_EQ(value_of(cells[static_cast<std::size_t>(i)]), want[static_cast<std::size_t>(i)]);
}

TEST(access_lists, are_written_and_updated) {
  runtime rt(options{.threads = 2});
  std::array<array<int, 1>, 4> cells;
  for (auto& a : cells) a = rt.array<int>({2});
  rt.spawn(
      [](views<int, 1> out) {
        for (std::size_t i = 0; i < out.size(); ++i) out[i](0) = out[i](1) = static_cast<int>(i) + 1;
      },
      write_all(cells));
  rt.spawn(
      [](views<int, 1> all) {
        for (const auto& v : all) v(0) *= 10;
      },
      update_all(std::span(cells).subspan(1)));
  EXPECT_EQ(value_of(cells[0]), 1);
  EXPECT_EQ(value_of(cells[1]), 20);
  EXPECT_EQ(value_of(cells[3]), 40);
}

TEST(access_lists, name_an_array_twice_if_they_only_read) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<int>({1}, tiles(1), 5);
  const std::vector<array<int, 1>> twice{a, a};
  EXPECT_EQ(rt.spawn([](views<const int, 1> v) { return v[0](0) + v[1](0); }, read_all(twice)).get(), 10);
  const auto e = error_of([&] { rt.spawn([](views<int, 1>) {}, write_all(twice)); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::overlapping_write);
  EXPECT_EQ(code_of([&] { rt.spawn([](views<int, 1>) {}, update_all(twice)); }), errc::overlapping_write);
  EXPECT_EQ(code_of([&] { rt.spawn([](views<const int, 1>, view<int, 1>) {}, read_all(twice), write(a)); }),
            errc::overlapping_write);
  EXPECT_EQ(code_of([&] { rt.spawn([](view<const int, 1>, views<int, 1>) {}, read(a), write_all(std::vector{a})); }),
            errc::overlapping_write);
  // Far apart in a long list, with others between them.
  auto many = numbered(rt, 40);
  many.push_back(many[2]);
  EXPECT_EQ(code_of([&] { rt.spawn([](views<int, 1>) {}, write_all(many)); }), errc::overlapping_write);
  many.pop_back();
  rt.spawn([](views<int, 1> v) { v[39](0) = 1; }, update_all(many)).get();
}

TEST(access_lists, with_wrong_elements_throw_at_the_call_and_leave_nothing) {
  runtime rt(options{.threads = 1});
  auto list = numbered(rt, 6);
  list[4] = {};
  EXPECT_EQ(code_of([&] { rt.spawn([](views<const int, 1>) {}, read_all(list)); }), errc::bad_argument);
  runtime other(options{.threads = 1});
  list[4] = other.filled<int>({4}, tiles(4), 1);
  EXPECT_EQ(code_of([&] { rt.spawn([](views<const int, 1>) {}, read_all(list)); }), errc::bad_argument);
  const std::vector<array<int, 1>> endless(65'536, list[0]);
  EXPECT_EQ(code_of([&] { rt.spawn([](views<const int, 1>) {}, read_all(endless)); }), errc::bad_argument);
  std::vector<future<int>> results{rt.spawn([] { return 1; }), {}};
  EXPECT_EQ(code_of([&] { rt.spawn([](values<int>) {}, results); }), errc::bad_argument);
  rt.wait_all();
  EXPECT_EQ(rt.report().executors.front().tasks, 6u + 1u);
}

TEST(access_lists, of_futures_give_their_values) {
  runtime rt(options{.threads = 3});
  for (int count : {0, 1, 3, 4, 16, 17, 100}) {
    std::vector<future<std::string>> words;
    for (int i = 0; i < count; ++i) words.push_back(rt.spawn([i] { return std::to_string(i); }));
    const std::string all = rt.spawn(
                                  [](values<std::string> list) {
                                    std::string text;
                                    for (const std::string& w : list) text += w + " ";
                                    EXPECT_TRUE(list.empty() ||
                                                list[list.size() - 1] == std::to_string(list.size() - 1));
                                    return text;
                                  },
                                  words)
                                .get();
    std::string want;
    for (int i = 0; i < count; ++i) want += std::to_string(i) + " ";
    EXPECT_EQ(all, want);
  }
}

TEST(access_lists, of_futures_of_nothing_are_only_waited_for) {
  runtime rt(options{.threads = 2});
  std::atomic<int> begun{0};
  std::vector<future<void>> all;
  for (int i = 0; i < 30; ++i) all.push_back(rt.spawn([&] { ++begun; }));
  EXPECT_EQ(rt.spawn([&] { return begun.load(); }, all).get(), 30);
  EXPECT_EQ(rt.spawn([&](int n) { return begun.load() + n; }, std::span(all), 1).get(), 31);
}

TEST(access_lists, pass_a_failure_on) {
  runtime rt(options{.threads = 2});
  std::vector<future<int>> results;
  for (int i = 0; i < 20; ++i)
    results.push_back(rt.spawn([i]() -> int { return i == 13 ? throw std::runtime_error("unlucky") : i; }));
  std::atomic<bool> ran{false};
  auto sum = rt.spawn([&](values<int>) { ran = true; }, results);
  const auto e = error_of([&] { sum.get(); });
  ASSERT_TRUE(e);
  EXPECT_TRUE(e->says("unlucky")) << e->text;
  EXPECT_FALSE(ran);
}

TEST(access_lists, have_mappers_in_for_each) {
  runtime rt(options{.threads = 2});
  std::vector<array<int, 1>> in;
  for (int i = 0; i < 3; ++i) {
    in.push_back(rt.array<int>({12}, tiles(4)));
    rt.for_each(
        grid(12),
        [i](view<int, 1> v) {
          for (index_t k = v.lo(0); k < v.hi(0); ++k) v(k) = static_cast<int>(k) + i;
        },
        write(in.back()));
  }
  std::vector<array<int, 1>> out{rt.array<int>({12}, tiles(4)), rt.array<int>({12}, tiles(4))};
  rt.for_each(
      grid(12).chunks(4),
      [](views<const int, 1> a, views<int, 1> b) {
        for (index_t k = b[0].lo(0); k < b[0].hi(0); ++k) {
          b[0](k) = a[0](k - 1) + a[1](k) + a[2](k + 1);
          b[1](k) = -b[0](k);
        }
      },
      read_all(in, window(1).wrap()), write_all(out));
  auto v = out[0].read();
  auto w = out[1].read();
  for (int k = 0; k < 12; ++k) {
    EXPECT_EQ(v(k), (k + 11) % 12 + (k + 1) + ((k + 1) % 12 + 2)) << k;
    EXPECT_EQ(w(k), -v(k));
  }
  // Chunks that write over each other are refused as for single arrays.
  EXPECT_EQ(code_of([&] { rt.for_each(grid(12).chunks(4), [](views<int, 1>) {}, write_all(out, all{})); }),
            errc::overlapping_write);
}

TEST(access_lists, are_recorded) {
  runtime rt(options{.threads = 2});
  auto parts = numbered(rt, 18);
  auto sum = rt.filled<int>({1}, tiles(1), 0);
  const auto graph = rt.record([&](recorder& r) {
    r.spawn(
        [](views<int, 1> all) {
          for (const auto& v : all) v(0) += 1;
        },
        update_all(parts));
    r.spawn(
        [](views<const int, 1> in, view<int, 1> out) {
          for (const auto& v : in) out(0) += v(0);
        },
        read_all(parts), update(sum));
  });
  for (int i = 0; i < 5; ++i) rt.run(graph);
  EXPECT_EQ(value_of(sum), 5 * 153 + 18 * (1 + 2 + 3 + 4 + 5));
}

TEST(access_lists, show_what_a_retry_has_restored) {
  runtime rt(options{.threads = 1});
  auto parts = numbered(rt, 5);
  rt.spawn(
        {.retries = 2},
        [](task_context& c, views<int, 1> all) {
          for (const auto& v : all) v(0) += 100;
          if (c.attempt() < 3) throw std::runtime_error("again");
        },
        update_all(parts))
      .get();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(value_of(parts[static_cast<std::size_t>(i)]), 100 + i);
}

}  // namespace
