// What this file is for: the text of kernel files, and the Gaussian.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "examples/convolve/kernel_file.hpp"

#include <numeric>

#include <gtest/gtest.h>

namespace {

using convolution::gaussian;
using convolution::kernel_error;
using convolution::parse_kernel;
using convolution::weights;

TEST(kernel_file, keeps_numbers_in_reading_order) {
  const weights w = parse_kernel("1 2 3\n4 5 6\n7 8 9\n", "k", true);
  EXPECT_EQ(w.height, 3u);
  EXPECT_EQ(w.width, 3u);
  EXPECT_EQ(w.values, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(kernel_file, divides_by_the_sum_unless_raw) {
  EXPECT_EQ(parse_kernel("1 2 1", "k", false).values, (std::vector<float>{0.25f, 0.5f, 0.25f}));
  EXPECT_EQ(parse_kernel("-1 -2 -1", "k", false).values, (std::vector<float>{0.25f, 0.5f, 0.25f}));
}

TEST(kernel_file, takes_any_blanks_and_any_spelling_of_numbers) {
  const weights w = parse_kernel("\r\n\t+1\t -2.5e-1 .5 \r\n\n", "k", true);
  EXPECT_EQ(w.height, 1u);
  EXPECT_EQ(w.values, (std::vector<float>{1, -0.25f, 0.5f}));
}

TEST(kernel_file, need_not_be_square_nor_end_with_a_line_break) {
  const weights w = parse_kernel("1\n2\n3", "k", true);
  EXPECT_EQ(w.height, 3u);
  EXPECT_EQ(w.width, 1u);
  EXPECT_EQ(w.radius_y(), 1u);
  EXPECT_EQ(w.radius_x(), 0u);
}

TEST(kernel_file, refuses_what_is_not_a_number) {
  for (const char* text : {"x", "1x", "1,5", "0x10", "inf", "nan", "--1", "+-1", "+", "1e", "1e999"})
    EXPECT_THROW(parse_kernel(text, "k", true), kernel_error) << text;
}

TEST(kernel_file, names_file_and_line_in_errors) {
  try {
    parse_kernel("1 2 3\n\n1 2\n", "some.txt", true);
    FAIL();
  } catch (const kernel_error& e) {
    EXPECT_STREQ(e.what(), "some.txt:3: a row of 2 numbers, where the rows above have 3");
  }
}

TEST(kernel_file, calls_a_sum_zero_that_differs_only_by_rounding) {
  EXPECT_THROW(parse_kernel("0.1 0.2 -0.3", "k", false), kernel_error);
  EXPECT_NO_THROW(parse_kernel("0.1 0.2 -0.3", "k", true));
}

TEST(kernel_file, makes_a_gaussian_that_is_symmetric_and_sums_to_one) {
  const weights w = gaussian(31, 5);
  ASSERT_EQ(w.values.size(), 961u);
  EXPECT_NEAR(std::accumulate(w.values.begin(), w.values.end(), 0.0), 1.0, 1e-6);
  EXPECT_NEAR(w.gain(), 1.0, 1e-6);
  for (std::size_t i = 0; i < 961; ++i) EXPECT_EQ(w.values[i], w.values[960 - i]);
  EXPECT_NEAR(w.values[15 * 31 + 20] / w.values[15 * 31 + 15], 0.6065307, 1e-6);  // one sigma off: exp(-1/2)
}

}  // namespace
