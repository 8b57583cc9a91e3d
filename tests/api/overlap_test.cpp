// What this file is for: two accesses of one call to the same elements, of which one changes them, are refused.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <optional>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::error_of;

using ints = view<int, 1>;
using cints = view<const int, 1>;
constexpr auto overlapping = errc::overlapping_write;

box<1> from_to(index_t lo, index_t hi) { return {{lo}, {hi}}; }

struct overlap : testing::TestWithParam<int> {  // the tiling changes nothing
  runtime rt{options{.threads = 2}};
  array<int, 1> a = rt.filled<int>({12}, tiles(GetParam()), 1, "a");
  array<int, 1> left = a.sub(from_to(0, 8)), right = a.sub(from_to(4, 12));
};

TEST_P(overlap, of_two_accesses_is_refused_if_one_changes_it) {
  const auto two = [](auto, auto) {};
  EXPECT_EQ(code_of([&] { rt.spawn(two, update(left), update(right)); }), overlapping);
  EXPECT_EQ(code_of([&] { rt.spawn(two, write(left), write(right)); }), overlapping);
  EXPECT_EQ(code_of([&] { rt.spawn(two, write(left), update(right)); }), overlapping);
  EXPECT_EQ(code_of([&] { rt.spawn(two, read(left), write(right)); }), overlapping);
  EXPECT_EQ(code_of([&] { rt.spawn(two, update(left), read(right)); }), overlapping);
  EXPECT_EQ(code_of([&] { rt.spawn(two, read(a), write(a)); }), overlapping);
  EXPECT_EQ(code_of([&] { rt.spawn(two, read(left), update(left)); }), std::nullopt);  // an update with two names
  EXPECT_EQ(code_of([&] { rt.spawn([](auto, auto, auto) {}, read(left), read(a), write(right)); }), overlapping);
  EXPECT_EQ(a.read()(5), 1);
}

TEST_P(overlap, is_refused_with_the_array_the_task_and_both_boxes) {
  const auto e = error_of([&] { rt.spawn({.name = "both"}, [](ints, ints) {}, update(left), update(right)); });
  ASSERT_TRUE(e);
  EXPECT_TRUE(e->says("'a'")) << e->text;
  EXPECT_TRUE(e->says("; pass them once")) << e->text;
}

TEST_P(overlap, of_a_reduction_and_another_access_is_refused) {
  const auto two = [](auto, auto) {};
  EXPECT_EQ(code_of([&] { rt.spawn(two, reduce(left), read(right)); }), overlapping);
  EXPECT_EQ(code_of([&] { rt.spawn(two, reduce(a), update(a)); }), overlapping);
  EXPECT_EQ(code_of([&] { rt.spawn(two, write(a), reduce(a)); }), overlapping);
}

TEST_P(overlap, of_two_reductions_is_none) {
  rt.spawn(
        [](ints x, ints y) {
          x(5) += 10;
          y(1) += 100;  // of the same element
        },
        reduce(left), reduce(right))
      .get();
  EXPECT_EQ(a.read()(5), 111);
}

TEST_P(overlap, is_none_where_boxes_only_touch_or_nobody_changes_anything) {
  rt.spawn([](cints x, ints y) { y(0) = x(7) + 1; }, read(left), write(a.sub(from_to(8, 12)))).get();
  EXPECT_EQ(a.read()(8), 2);
  EXPECT_EQ(rt.spawn([](cints x, cints y) { return x(4) + y(0); }, read(left), read(right)).get(), 2);
  rt.spawn([](ints x, ints y) { std::swap(x(0), y(0)); }, update(a.sub(from_to(0, 1))), update(a.sub(from_to(8, 9))))
      .get();
  EXPECT_EQ(a.read()(0), 2);
}

TEST_P(overlap, within_a_chunk_is_refused) {
  const auto two = [](auto, auto) {};
  EXPECT_EQ(code_of([&] { rt.for_each(grid(12), two, read(a, window(1).clamp()), update(a)); }), overlapping);
  EXPECT_EQ(code_of([&] { rt.for_each(grid(8).chunks(8), two, update(left), update(right)); }), overlapping);
  EXPECT_EQ(a.read()(5), 1);
  const auto wrapped = a.sub(from_to(0, 12));  // the window of the first chunk reaches the last element
  EXPECT_EQ(code_of([&] {
              rt.for_each(grid(12), two, read(wrapped, window(1).wrap()), write(a.sub(from_to(11, 12)), all{}));
            }),
            overlapping);
}

// As a loop over the chunks would do: one after the other.
TEST_P(overlap, of_a_chunk_with_what_another_one_changes_is_in_the_order_of_chunks) {
  const auto before = [](const box<1>& c, const extent<1>&) { return box<1>{{c.lo[0]}, {c.hi[0]}}; };
  rt.for_each(
        grid(11).chunks(1), [](cints x, ints y) { y(y.lo(0)) += x(x.lo(0)); }, read(a.sub(from_to(0, 11)), before),
        update(a.sub(from_to(1, 12))))
      .get();
  EXPECT_EQ(a.read()(11), 12);
}

TEST_P(overlap, of_what_two_arguments_write_in_different_chunks_is_refused) {
  const auto shifted = [](const box<1>& c, const extent<1>&) {
    return box<1>{{c.lo[0] == 0 ? 6 : c.lo[0] - 3}, {c.lo[0] == 0 ? 9 : c.hi[0] - 3}};
  };
  EXPECT_EQ(code_of([&] {
              rt.for_each(grid(6).chunks(3), [](auto, auto) {}, write(a.sub(from_to(0, 6))), write(a, shifted));
            }),
            overlapping);
}

TEST_P(overlap, in_a_recorded_call_is_refused) {
  EXPECT_EQ(code_of([&] {
              (void)rt.record([&](recorder& r) { r.spawn([](auto, auto) {}, update(left), update(right)); });
            }),
            overlapping);
}

INSTANTIATE_TEST_SUITE_P(tilings, overlap, testing::Values(1, 4, 5, 12));

}  // namespace
