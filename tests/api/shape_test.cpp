// What this file is for: shapes that a kernel requires of its arrays: calls that do not give them are refused at once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include <troupe/troupe.hpp>

namespace {

using namespace troupe;

inline constexpr auto add = kernel<in<int, 1>, float, inout<int, 1>>("shape.add")
                                .requiring(same_shape(0, 2), not_empty(2))
                                .on(cpu, [](view<const int, 1> a, float, view<int, 1> b) {
                                  for (index_t i = 0; i < b.size(0); ++i) b.data()[i] += a.data()[i];
                                });
inline constexpr auto product = kernel<in<int, 2>, in<int, 2>, inout<int, 2>>("shape.product")
                                    .requiring(same_size(0, 1, 1, 0), same_size(2, 0, 0, 0), same_size(2, 1, 1, 1))
                                    .on(cpu, [](view<const int, 2>, view<const int, 2>, view<int, 2>) {});
inline constexpr auto blur = kernel<in<int, 1>, out<int, 1>>("shape.blur")
                                 .requiring(covers(0, 1, 1))
                                 .on(cpu, [](view<const int, 1> a, view<int, 1> b) {
                                   for (index_t i = b.lo(0); i < b.hi(0); ++i) b(i) = a(i - 1) + a(i + 1);
                                 });
inline constexpr auto shift = kernel<in<int, 1>, out<int, 1>>("shape.shift")
                                  .requiring(covers(0, 1))
                                  .on(cpu, [](view<const int, 1> a, view<int, 1> b) {
                                    for (index_t i = b.lo(0); i < b.hi(0); ++i) b(i) = a(i);
                                  });
inline constexpr auto of_three =
    kernel<in<int, 1>>("shape.of_three").requiring(has_size(0, 0, 3)).on(cpu, [](view<const int, 1>) {});

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::bad_argument);
    return e.what();
  }
  ADD_FAILURE() << "it was let through";
  return {};
}

TEST(shapes, that_a_kernel_requires_are_checked_at_the_call) {
  runtime rt({.threads = 1});
  const auto six = rt.filled<int>({6}, tiles(6), 1, "six"), two = rt.filled<int>({2}, tiles(2), 1, "two");
  const std::string why = refusal([&] { rt.spawn(add, read(six), 1.0f, update(two)); });
  EXPECT_NE(why.find("array 'six' [0,6) with array 'two' [0,2)"), std::string::npos) << why;
  rt.spawn(add, read(six.sub({{2}, {4}})), 1.0f, update(two)).get();
  EXPECT_EQ(two.read()(1), 2);
  refusal([&] { rt.spawn(of_three, read(two)); });
  rt.spawn(of_three, read(six.sub({{1}, {4}}))).get();
}

TEST(shapes, are_those_of_each_chunk) {
  runtime rt({.threads = 2});
  const auto from = rt.filled<int>({64}, tiles(16), 1), to = rt.filled<int>({64}, tiles(16), 0);
  rt.for_each(grid(64), add, read(from), 1.0f, update(to)).get();
  EXPECT_EQ(to.read()(63), 1);
  refusal([&] { rt.for_each(grid(64), add, read(from, all{}), 1.0f, update(to)); });
  rt.for_each(grid(64), blur, read(from, window(1).clamp()), write(to)).get();
  refusal([&] { rt.for_each(grid(64), blur, read(from), write(to)); });
  refusal([&] { rt.for_each(grid(64), shift, read(from, fixed<1>{{{0}, {32}}}), write(to)); });
  rt.spawn(shift, read(from.sub({{16}, {48}})), write(to.sub({{0}, {32}}))).get();  // as the body counts
}

TEST(shapes, of_factors_fit_each_other) {
  runtime rt({.threads = 1});
  const auto a = rt.filled<int>({2, 3}, tiles(2, 3), 1), b = rt.filled<int>({3, 4}, tiles(3, 4), 1);
  const auto c = rt.filled<int>({2, 4}, tiles(2, 4), 1);
  rt.spawn(product, read(a), read(b), update(c)).get();
  refusal([&] { rt.spawn(product, read(b), read(a), update(c)); });
}

TEST(shapes, of_nothing_are_refused_where_there_has_to_be_something) {
  runtime rt({.threads = 1});
  const auto a = rt.filled<int>({0}, tiles(1), 1), b = rt.filled<int>({0}, tiles(1), 1);
  refusal([&] { rt.spawn(add, read(a), 1.0f, update(b)); });
  rt.spawn(product, read(rt.filled<int>({0, 3}, tiles(1, 1), 1)), read(rt.filled<int>({3, 0}, tiles(1, 1), 1)),
           update(rt.filled<int>({0, 0}, tiles(1, 1), 1)))
      .get();  // nothing was said against that
}

TEST(shapes, are_said_of_arrays_that_the_kernel_has) {
  const kernel<in<int, 1>, float, inout<int, 2>> k("shape.wrong");
  refusal([&] { (void)k.requiring(not_empty(1)); });
  refusal([&] { (void)k.requiring(not_empty(3)); });
  refusal([&] { (void)k.requiring(same_shape(0, 2)); });
  refusal([&] { (void)k.requiring(same_size(0, 1, 2, 0)); });
  (void)k.requiring(same_size(0, 0, 2, 1));
}

}  // namespace
