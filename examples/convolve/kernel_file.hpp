// What this file is for: the weights of a filter, from a text file or the Gaussian that is the default.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "input_error.hpp"

namespace convolution {

class kernel_error : public input_error {
 public:
  using input_error::input_error;
};

/// A filter of odd height and width; `values` row by row. Applied as written, that is, as a correlation.
struct weights {
  std::size_t height = 0;
  std::size_t width = 0;
  std::vector<float> values;

  std::size_t radius_y() const { return height / 2; }
  std::size_t radius_x() const { return width / 2; }
  /// The sum of the magnitudes: how much the filter can amplify, and with it rounding errors.
  double gain() const;
};

/// Rows and columns of a filter are at most this many.
inline constexpr std::size_t side_max = 63;

/// The weights exp(-(x^2 + y^2) / (2 sigma^2)) on `side` x `side` points, divided by their sum.
weights gaussian(std::size_t side, double sigma);

/// Reads rows of whitespace-separated numbers; empty lines are skipped. Divides by the sum unless `raw`. Throws
/// `kernel_error` "NAME:LINE: ..." for text that is not a number, rows of different lengths, even or too large sizes,
/// and a sum of zero without `raw`. `name` is what messages call the text.
weights parse_kernel(std::string_view text, const std::string& name, bool raw);

/// The same for a file.
weights read_kernel(const std::string& path, bool raw);

}  // namespace convolution
