// What this file is for: the judge is judged: known sums, and faults that it must find.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "examples/convolve/reference.hpp"

#include <gtest/gtest.h>

#include "../pictures.hpp"

namespace {

using convolution::compare_with_reference;
using convolution::image;
using convolution::parse_kernel;
using convolution::verdict;

const convolution::weights box = parse_kernel("1 1 1", "box", false);

TEST(reference, knows_an_average_worked_out_by_hand) {
  const image before{3, 1, 3, {0, 30, 90, 60, 60, 60, 120, 0, 255}};
  const image after{3, 1, 3, {20, 40, 80, 60, 30, 135, 100, 20, 190}};
  const verdict v = compare_with_reference(before, box, after);
  EXPECT_TRUE(v.passed());
  EXPECT_EQ(v.samples, 9u);
  EXPECT_EQ(v.exact, 9u);
  EXPECT_EQ(v.difference_max, 0);
}

TEST(reference, finds_one_sample_that_is_one_level_off) {
  const image before = troupe_test::noise(9, 7, 3);
  image after = before;
  const auto identity = parse_kernel("1", "one", false);
  EXPECT_TRUE(compare_with_reference(before, identity, after).passed());
  after.samples[100] ^= 1;
  const verdict v = compare_with_reference(before, identity, after);
  EXPECT_FALSE(v.passed());
  EXPECT_EQ(v.wrong, 1u);
  EXPECT_EQ(v.difference_max, 1);
}

TEST(reference, finds_alpha_that_changed) {
  const image before{1, 1, 4, {1, 2, 3, 4}};
  const image after{1, 1, 4, {1, 2, 3, 5}};
  EXPECT_EQ(compare_with_reference(before, box, after).wrong, 1u);
}

TEST(reference, accepts_either_level_on_a_rounding_boundary_only) {
  const auto half = parse_kernel("0.5", "half", true);
  const image before{1, 1, 3, {1, 3, 4}};  // 0.5, 1.5, 2
  const verdict near = compare_with_reference(before, half, {1, 1, 3, {0, 1, 2}});
  EXPECT_TRUE(near.passed());
  EXPECT_EQ(near.borderline, 2u);
  EXPECT_EQ(near.exact, 1u);
  EXPECT_FALSE(compare_with_reference(before, half, {1, 1, 3, {1, 2, 3}}).passed());
  EXPECT_FALSE(compare_with_reference(before, half, {1, 1, 3, {2, 2, 2}}).passed());
}

TEST(reference, allows_float_less_than_a_thousandth_of_a_level) {
  const image one{1, 1, 3, {0, 0, 0}};
  EXPECT_LT(compare_with_reference(one, convolution::gaussian(31, 5), one).tolerance, 1e-3);
}

}  // namespace
