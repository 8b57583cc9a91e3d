// What this file is for: operators that nodes know by a number, and those that they do not.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/reduction_operators.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>

namespace {

using namespace troupe::detail;

template <class T, class Op>
T applied(T a, T b) {
  constexpr std::uint16_t code = operator_code<T, Op>();
  const combine_fn f = combiner_of(code);
  if (!f) {
    ADD_FAILURE() << "operator " << code << " is not known";
    return {};
  }
  EXPECT_EQ(element_of(code), sizeof(T));
  f->combine(&a, &b, 1);
  return a;
}

TEST(reduction_operators, are_those_of_the_standard_library_on_numbers) {
  EXPECT_EQ((applied<std::int32_t, std::plus<>>(-5, 3)), -2);
  EXPECT_EQ((applied<std::int32_t, std::plus<std::int32_t>>(-5, 3)), -2);
  EXPECT_EQ((applied<std::uint8_t, std::plus<>>(250, 10)), 4);
  EXPECT_EQ((applied<double, std::multiplies<>>(1.5, -2)), -3.0);
  EXPECT_EQ((applied<float, std::plus<>>(0.5f, 0.25f)), 0.75f);
  EXPECT_EQ((applied<std::uint64_t, std::bit_and<>>(12, 10)), 8u);
  EXPECT_EQ((applied<std::uint16_t, std::bit_or<>>(12, 3)), 15);
  EXPECT_EQ((applied<std::int64_t, std::bit_xor<>>(12, 10)), 6);
  EXPECT_EQ((applied<long, std::plus<>>(1, 2)), 3);
  EXPECT_EQ((applied<long long, std::plus<>>(1, 2)), 3);
  EXPECT_EQ((applied<char, std::plus<>>(1, 2)), 3);
}

TEST(reduction_operators, differ_by_what_they_do_and_by_type) {
  const std::set<std::uint16_t> all{
      operator_code<std::int32_t, std::plus<>>(),  operator_code<std::uint32_t, std::plus<>>(),
      operator_code<float, std::plus<>>(),         operator_code<std::int64_t, std::plus<>>(),
      operator_code<double, std::plus<>>(),        operator_code<std::int32_t, std::multiplies<>>(),
      operator_code<std::int32_t, std::bit_or<>>()};
  EXPECT_EQ(all.size(), 7u);
  EXPECT_FALSE(all.contains(0));
}

TEST(reduction_operators, of_other_types_are_not_known) {
  struct own {
    int operator()(int a, int b) const { return a + b; }
  };
  struct number {
    int x;
  };
  EXPECT_EQ((operator_code<int, own>()), 0);
  EXPECT_EQ((operator_code<int, std::minus<>>()), 0);
  EXPECT_EQ((operator_code<bool, std::bit_or<>>()), 0);
  EXPECT_EQ((operator_code<long double, std::plus<>>()), 0);
  EXPECT_EQ((operator_code<number, std::plus<>>()), 0);
  EXPECT_EQ(combiner_of(0), nullptr);
  EXPECT_EQ(combiner_of(0xffff), nullptr);
  EXPECT_EQ(combiner_of(static_cast<std::uint16_t>(operator_code<double, std::plus<>>() + 0x200)), nullptr)
      << "bits of a double";
}

}  // namespace
