// What this file is for: numbers that a kernel's parameters do not hold are refused at the call, and others arrive.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::error_of;

/// Keeps what it was passed, as its parameter's type has it.
template <class P>
constexpr auto keep = kernel<out<P, 1>, P>("keep").on(cpu, [](view<P, 1> a, P value) { a(0) = value; });

class kernel_numbers : public testing::Test {
 protected:
  /// Returns what arrives; the code of the error where nothing does.
  template <class P, class T>
  P passed(T value) {
    auto a = rt_.array<P>({1}, tiles(1));
    rt_.spawn(keep<P>, write(a), value).get();
    return a.read()(0);
  }
  template <class P, class T>
  bool is_refused(T value) {
    auto a = rt_.array<P>({1}, tiles(1));
    const auto spawned = code_of([&] { rt_.spawn(keep<P>, write(a), value); });
    const auto looped = code_of([&] { rt_.for_each(grid(1), keep<P>, write(a), value); });
    EXPECT_EQ(spawned, looped);
    EXPECT_TRUE(!spawned || *spawned == errc::bad_argument);
    return spawned.has_value();
  }
  runtime rt_{options{.threads = 1}};
};

enum small : std::uint8_t { seven = 7 };
enum large : std::int64_t { milliards = 5'000'000'000 };

TEST_F(kernel_numbers, that_are_held_arrive) {
  EXPECT_EQ(passed<std::int32_t>(std::int64_t{-2147483648}), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(passed<std::uint32_t>(4294967295l), 4294967295u);
  EXPECT_EQ(passed<std::uint32_t>(4), 4u);
  EXPECT_EQ(passed<std::int32_t>(3.0), 3);
  EXPECT_EQ(passed<std::int64_t>(-9223372036854775808.0), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(passed<std::int8_t>(-128.0f), -128);
  EXPECT_EQ(passed<float>(0.1), 0.1f);  // rounded
  EXPECT_EQ(passed<float>(16'777'217), 16'777'216.0f);
  EXPECT_EQ(passed<float>(HUGE_VAL), HUGE_VALF);
  EXPECT_TRUE(std::isnan(passed<float>(std::nan(""))));
  EXPECT_EQ(passed<double>(0.5f), 0.5);
  EXPECT_EQ(passed<std::uint8_t>(seven), 7);
  EXPECT_EQ(passed<char>(65), 'A');
  EXPECT_EQ(passed<std::int32_t>(true), 1);
}

TEST_F(kernel_numbers, that_are_not_held_are_refused) {
  EXPECT_TRUE(is_refused<std::int32_t>(std::int64_t{5'000'000'000}));
  EXPECT_TRUE(is_refused<std::int32_t>(2147483648u));
  EXPECT_TRUE(is_refused<std::uint32_t>(-1));
  EXPECT_TRUE(is_refused<std::uint64_t>(std::int64_t{-1}));
  EXPECT_TRUE(is_refused<std::int64_t>(~std::uint64_t{0}));
  EXPECT_TRUE(is_refused<std::int8_t>(128));
  EXPECT_TRUE(is_refused<std::int32_t>(3.5));
  EXPECT_TRUE(is_refused<std::int32_t>(2147483648.0));
  EXPECT_TRUE(is_refused<std::int64_t>(9223372036854775808.0));
  EXPECT_TRUE(is_refused<std::int64_t>(9223372036854775808.0f));
  EXPECT_TRUE(is_refused<std::uint8_t>(-1.0));
  EXPECT_TRUE(is_refused<std::int32_t>(std::nan("")));
  EXPECT_TRUE(is_refused<std::int32_t>(HUGE_VAL));
  EXPECT_TRUE(is_refused<float>(1e39));
  EXPECT_TRUE(is_refused<float>(-DBL_MAX));
  EXPECT_TRUE(is_refused<std::int32_t>(milliards));
  EXPECT_FALSE(is_refused<std::int64_t>(milliards));
}

constexpr auto shift = kernel<inout<int, 1>, float, std::int32_t>("shift").on(
    cpu, [](view<int, 1> a, float, std::int32_t by) { a(0) += by; });

TEST_F(kernel_numbers, that_are_refused_are_told_with_kernel_argument_value_and_type) {
  auto a = rt_.filled<int>({1}, tiles(1), 0, "a");
  auto e = error_of([&] { rt_.spawn(shift, update(a), 1, std::int64_t{5'000'000'000}); });
  ASSERT_TRUE(e);
  EXPECT_TRUE(e->says("kernel 'shift', argument 3 of 3: 5000000000 cannot be passed as int32")) << e->text;
  e = error_of([&] { rt_.for_each(grid(1), shift, update(a), 1e300, 1); });
  ASSERT_TRUE(e);
  EXPECT_TRUE(e->says("kernel 'shift', argument 2 of 3: 1.0000000000000001e+300 cannot be passed as float")) << e->text;
  e = error_of([&] { rt_.record([&](recorder& r) { r.spawn(shift, update(a), 1, 0.5); }); });
  ASSERT_TRUE(e);
  EXPECT_TRUE(e->says("argument 3 of 3: 0.5 cannot be passed as int32")) << e->text;
  EXPECT_EQ(a.read()(0), 0) << "a call that was refused has run";
}

// Known when the task runs.
TEST_F(kernel_numbers, of_futures_that_are_not_held_fail_the_task) {
  auto a = rt_.filled<int>({1}, tiles(1), 0, "a");
  auto fits = rt_.spawn([] { return std::int64_t{7}; });
  rt_.spawn(shift, update(a), 1.0f, fits).get();
  EXPECT_EQ(a.read()(0), 7);
  auto wide = rt_.spawn([] { return std::int64_t{1} << 40; });
  auto f = rt_.spawn(shift, update(a), 1.0f, wide);
  const auto e = error_of([&] { f.get(); });
  ASSERT_TRUE(e && e->from_task);
  EXPECT_TRUE(e->says("kernel 'shift', argument 3 of 3: 1099511627776 cannot be passed as int32")) << e->text;
}

}  // namespace
