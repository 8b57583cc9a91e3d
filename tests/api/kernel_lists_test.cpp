// What this file is for: kernels whose signatures have lists of arrays and of values, on cores.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::code_of;
using troupe::index_t;

template <class T>
using list_of = std::span<const view<T, 1>>;

inline constexpr auto number = kernel<out<int, 1>, int>("lists.number").on(cpu, [](view<int, 1> v, int n) {
  std::fill_n(v.data(), v.size(0), n);
});
inline constexpr auto add_up =
    kernel<in_all<int, 1>, out<int, 1>>("lists.add_up").on(cpu, [](list_of<const int> parts, view<int, 1> sum) {
      sum(0) = 0;
      for (const auto& p : parts) sum(0) += p(0);
    });
// Each list, and what stands between them, has a place of its own in the result.
inline constexpr auto mixed =
    kernel<int, in_all<int, 1>, in<int, 1>, std::span<const int>, in_all<int, 1>, out<int, 1>, bool>("lists.mixed")
        .on(cpu, [](task_context& c, int first, list_of<const int> a, view<const int, 1> one,
                    std::span<const int> values, list_of<const int> b, view<int, 1> to, bool last) {
          EXPECT_EQ(c.attempt(), 1);
          to(0) = first;
          to(1) = to(3) = to(4) = 0;
          for (const auto& p : a) to(1) = 10 * to(1) + p(0);
          to(2) = one(0);
          for (const int v : values) to(3) = 10 * to(3) + v;
          for (const auto& p : b) to(4) = 10 * to(4) + p(0);
          to(5) = last ? 1 : 0;
        });
inline constexpr auto share = kernel<in<int, 1>, out_all<int, 1>, inout_all<int, 1>>("lists.share")
                                  .on(cpu, [](view<const int, 1> from, list_of<int> to, list_of<int> sums) {
                                    for (const auto& v : to) std::fill_n(v.data(), v.size(0), from(0));
                                    for (const auto& v : sums) v(0) += from(0);
                                  });
struct counted {
  std::size_t all = 0, set = 0;
};
inline counted seen_truths;
inline constexpr auto truths = kernel<std::span<const bool>>("lists.truths").on(cpu, [](std::span<const bool> b) {
  seen_truths = {b.size(), static_cast<std::size_t>(std::count(b.begin(), b.end(), true))};
});

std::vector<array<int, 1>> numbered(runtime& rt, int count, index_t size = 4) {
  std::vector<array<int, 1>> list;
  for (int i = 0; i < count; ++i) {
    list.push_back(rt.array<int>({size}, "part " + std::to_string(i)));
    rt.spawn(number, write(list.back()), i);
  }
  return list;
}
int value_of(const array<int, 1>& a, index_t i = 0) { return a.read()(i); }

// As long as fits where they are kept without an allocation, and longer; empty.
TEST(kernel_lists, give_the_views_of_all_arrays_in_their_order) {
  runtime rt({.threads = 2});
  const auto sum = rt.array<int>({1});
  for (const int count : {0, 1, 2, 3, 4, 15, 16, 17, 33, 200}) {
    const auto parts = numbered(rt, count);
    rt.spawn(add_up, read_all(parts), write(sum));
    EXPECT_EQ(value_of(sum), count * (count - 1) / 2) << count;
  }
}

TEST(kernel_lists, stand_among_other_arguments) {
  runtime rt({.threads = 2});
  const auto parts = numbered(rt, 7);
  const auto to = rt.array<int>({6});
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < 4; ++b) {
      std::vector<future<int>> values;
      for (int i = 1; i <= static_cast<int>(b); ++i) values.push_back(rt.spawn([i] { return i; }));
      const std::span<const array<int, 1>> first(parts.data() + 1, a), second(parts.data() + 4, b > 2 ? 2 : b);
      rt.spawn(mixed, rt.spawn([] { return 9; }), read_all(first), read(parts[6]), values, read_all(second), write(to),
               true);
      const auto v = to.read();
      const int digits[] = {0, 1, 12, 123};
      EXPECT_EQ(v(0), 9);
      EXPECT_EQ(v(1), digits[a]);
      EXPECT_EQ(v(2), 6);
      EXPECT_EQ(v(3), digits[b]);
      EXPECT_EQ(v(4), (std::array{0, 4, 45, 45})[b]);
      EXPECT_EQ(v(5), 1);
    }
}

TEST(kernel_lists, are_written_and_updated) {
  runtime rt({.threads = 2});
  const auto parts = numbered(rt, 20), sums = numbered(rt, 18);
  const auto from = rt.filled<int>({1}, tiles(1), 100);
  rt.spawn(share, read(from), write_all(parts), update_all(sums));
  for (const auto& p : parts) EXPECT_EQ(value_of(p, 3), 100);
  for (int i = 0; i < 18; ++i) EXPECT_EQ(value_of(sums[static_cast<std::size_t>(i)]), 100 + i);
  EXPECT_EQ(code_of([&] { rt.spawn(share, read(from), write_all(parts), update_all(parts)); }),
            errc::overlapping_write);
}

// They may be futures, or anything that has its elements one after the other, which may go at once.
TEST(kernel_lists, of_values_are_copied_into_the_task) {
  runtime rt({.threads = 1});
  const auto parts = numbered(rt, 1);
  const auto to = rt.array<int>({6});
  const std::span<const array<int, 1>> none;
  const auto result = [&](const auto& values) {
    rt.spawn(mixed, 0, read_all(none), read(parts[0]), values, read_all(none), write(to), false);
    return value_of(to, 3);
  };
  test::gate block;
  rt.spawn([&](view<int, 1>) { EXPECT_TRUE(block.pass()); }, write(to));
  {
    std::vector<int> gone{4, 5};
    rt.spawn(mixed, 0, read_all(none), read(parts[0]), gone, read_all(none), write(to), false);
    gone.assign(2, 7);
  }
  block.open();
  EXPECT_EQ(value_of(to, 3), 45);
  EXPECT_EQ(result(std::vector<int>{}), 0);
  EXPECT_EQ(result(std::array{1, 2, 3}), 123);
  std::vector<int> some{5, 6, 7};
  EXPECT_EQ(result(std::span<int>(some).first(2)), 56);
  EXPECT_EQ(result(std::span<const int>(some).last(1)), 7);
  std::vector<future<int>> futures;
  futures.push_back(rt.spawn([] { return 8; }));
  EXPECT_EQ(result(std::span<const future<int>>(futures)), 8);
  EXPECT_EQ(result(std::span<future<int>>(futures)), 8);
}

TEST(kernel_lists, may_come_from_the_future_of_a_list) {
  runtime rt({.threads = 1});
  const auto parts = numbered(rt, 1);
  const auto to = rt.array<int>({6});
  const std::span<const array<int, 1>> none;
  rt.spawn(mixed, 0, read_all(none), read(parts[0]), rt.spawn([] {
    return std::vector{7, 8, 9};
  }),
           read_all(none), write(to), false);
  EXPECT_EQ(value_of(to, 3), 789);
  const int three[] = {1, 2, 3};
  rt.spawn(mixed, 0, read_all(none), read(parts[0]), three, read_all(none), write(to), false);
  EXPECT_EQ(value_of(to, 3), 123);
}

TEST(kernel_lists, of_large_values_need_no_room_on_the_stack) {
  struct large {
    std::array<int, 1 << 18> numbers;
  };
  static constexpr auto last =
      kernel<std::span<const large>, out<int, 1>>("lists.last")
          .on(cpu, [](std::span<const large> all, view<int, 1> to) { to(0) = all.back().numbers.back(); });
  runtime rt({.threads = 1});
  const auto to = rt.array<int>({1});
  std::vector<large> list(16);  // 1 MiB each
  list.back().numbers.back() = 5;
  rt.spawn(last, list, write(to));
  EXPECT_EQ(value_of(to), 5);
}

TEST(kernel_lists, of_truths_are_lists_like_others) {
  runtime rt({.threads = 1});
  std::array<bool, 40> values{};
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = true;
  rt.spawn(truths, values).get();
  EXPECT_EQ(seen_truths.all, 40u);
  EXPECT_EQ(seen_truths.set, 14u);
  std::vector<future<bool>> futures;
  for (int i = 0; i < 20; ++i) futures.push_back(rt.spawn([i] { return i % 4 == 0; }));
  rt.spawn(truths, futures).get();
  EXPECT_EQ(seen_truths.all, 20u);
  EXPECT_EQ(seen_truths.set, 5u);
}

TEST(kernel_lists, pass_failures_on) {
  runtime rt({.threads = 2});
  const auto parts = numbered(rt, 3);
  const auto sum = rt.array<int>({1});
  rt.spawn([](view<int, 1>) { throw std::runtime_error("no part"); }, update(parts[1]));
  const auto done = rt.spawn(add_up, read_all(parts), write(sum));
  EXPECT_EQ(code_of([&] { done.get(); }), errc::dependency_failed);
  std::vector<future<bool>> futures;
  futures.push_back(rt.spawn([]() -> bool { throw std::runtime_error("no value"); }));
  EXPECT_EQ(code_of([&] { rt.spawn(truths, futures).get(); }), errc::dependency_failed);
}

// The number of a future is looked at when the body runs, wherever it stands.
TEST(kernel_lists, leave_the_numbers_behind_them_checked) {
  runtime rt({.threads = 2});
  const auto parts = numbered(rt, 3);
  const auto sum = rt.array<int>({1});
  static constexpr auto scaled = kernel<in_all<int, 1>, std::int8_t, out<int, 1>>("lists.scaled")
                                     .on(cpu, [](list_of<const int> all, std::int8_t by, view<int, 1> to) {
                                       to(0) = by * static_cast<int>(all.size());
                                     });
  rt.spawn(scaled, read_all(parts), rt.spawn([] { return 100; }), write(sum)).get();
  EXPECT_EQ(value_of(sum), 300);
  const auto done = rt.spawn(scaled, read_all(parts), rt.spawn([] { return 300; }), write(sum));
  const auto e = test::error_of([&] { done.get(); });
  ASSERT_TRUE(e && e->from_task);
  EXPECT_TRUE(e->says("argument 2 of 3: 300 cannot be passed as int8")) << e->text;
}

TEST(kernel_lists, have_mappers_in_for_each) {
  runtime rt({.threads = 2});
  constexpr index_t n = 100;
  std::vector<array<int, 1>> terms;
  for (int i = 0; i < 5; ++i) terms.push_back(rt.filled<int>({n}, tiles(16), i));
  const auto to = rt.array<int>({n}, tiles(16));
  static constexpr auto sums =
      kernel<in_all<int, 1>, out<int, 1>>("lists.sums").on(cpu, [](list_of<const int> all, view<int, 1> v) {
        for (index_t i = v.lo(0); i < v.hi(0); ++i) {
          v(i) = 0;
          for (const auto& a : all) v(i) += a(i);
        }
      });
  rt.for_each(grid(n).chunks(7), sums, read_all(terms, one_to_one{}), write(to, one_to_one{})).get();
  const auto v = to.read();
  for (index_t i = 0; i < n; ++i) ASSERT_EQ(v(i), 10) << i;
}

TEST(kernel_lists, are_recorded) {
  runtime rt({.threads = 2});
  const auto parts = numbered(rt, 20);
  const auto sum = rt.array<int>({1}), one = rt.filled<int>({1}, tiles(1), 1);
  auto g = rt.record([&](recorder& r) {
    r.spawn(share, read(one), write_all(std::span(parts).first(3)), update_all(std::span(parts).subspan(3)));
    r.spawn(add_up, read_all(parts), write(sum));
  });
  for (int run = 1; run <= 4; ++run) {
    rt.run(g).get();
    EXPECT_EQ(value_of(sum), 3 + 187 + 17 * run);
  }
}

// ---- shapes -----------------------------------------------------------------------------------------------------

inline constexpr auto of_equals = kernel<float, in_all<int, 1>, int, inout_all<int, 1>, in<int, 1>>("lists.of_equals")
                                      .requiring(same_shape(1, 4), same_shape(1, 3), not_empty(4))
                                      .on(cpu, [](float, list_of<const int>, int, list_of<int>, view<const int, 1>) {});

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::bad_argument) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "it was let through";
  return {};
}

TEST(kernel_lists, have_the_shapes_that_a_kernel_requires_of_each) {
  runtime rt({.threads = 1});
  auto fours = numbered(rt, 3), others = numbered(rt, 3);
  const auto four = rt.filled<int>({4}, tiles(4), 0), five = rt.filled<int>({5}, tiles(5), 0, "five");
  const std::span<const array<int, 1>> none;
  rt.spawn(of_equals, 1.0f, read_all(fours), 0, update_all(others), read(four)).get();
  rt.spawn(of_equals, 1.0f, read_all(none), 0, update_all(none), read(five)).get();
  const std::string lengths = refusal(
      [&] { rt.spawn(of_equals, 1.0f, read_all(fours), 0, update_all(std::span(others).first(2)), read(four)); });
  EXPECT_NE(lengths.find("lists of 3 and 2 arrays"), std::string::npos) << lengths;
  const std::string third =
      refusal([&] { rt.spawn(of_equals, 1.0f, read_all(fours), 0, update_all(others), read(five)); });
  EXPECT_NE(third.find("array 'part 0' [0,4) with array 'five' [0,5)"), std::string::npos) << third;
  others[2] = five;
  const std::string second =
      refusal([&] { rt.spawn(of_equals, 1.0f, read_all(fours), 0, update_all(others), read(four)); });
  EXPECT_NE(second.find("array 'part 2' [0,4) with array 'five' [0,5)"), std::string::npos) << second;
}

// Checks take time in proportion to the list.
TEST(kernel_lists, of_thousands_are_checked_soon) {
  runtime rt({.threads = 1});
  const auto one = rt.filled<int>({4}, tiles(4), 0);
  static constexpr auto both = kernel<in_all<int, 1>, in_all<int, 1>>("lists.both")
                                   .requiring(same_shape(0, 1), not_empty(0), has_size(1, 0, 4))
                                   .on(cpu, [](list_of<const int>, list_of<const int>) {});
  const std::vector<array<int, 1>> list(30'000, one);
  const auto begin = std::chrono::steady_clock::now();
  rt.spawn(both, read_all(list), read_all(list)).get();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << "minutes where each is looked for";
}

TEST(kernel_lists, are_no_place_for_rules_about_what_they_have_not) {
  EXPECT_EQ(code_of([] { (void)kernel<in_all<int, 2>>("k").requiring(has_size(0, 2, 1)); }), errc::bad_argument);
  EXPECT_EQ(code_of([] { (void)kernel<in_all<int, 2>, in<int, 1>>("k").requiring(same_shape(0, 1)); }),
            errc::bad_argument);
  EXPECT_EQ(code_of([] { (void)kernel<std::span<const int>>("k").requiring(not_empty(0)); }), errc::bad_argument);
}

}  // namespace
