// What this file is for: the serial reference; nothing here is shared with the code it judges, and nothing is clever.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace convolution {
namespace {

// Where index -radius .. length + radius - 1 falls when positions beyond the border repeat the border.
std::vector<std::size_t> clamped_positions(std::size_t length, std::size_t radius) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < length + 2 * radius; ++i)
    result.push_back(std::min(i > radius ? i - radius : 0, length - 1));
  return result;
}

// `value`: what the sample is before it is rounded.
void judge(double value, int level, verdict& result) {
  const double clamped = std::clamp(value, 0.0, 255.0);
  const int below = static_cast<int>(std::floor(clamped));
  const int expected = static_cast<int>(std::floor(clamped + 0.5));
  const bool on_the_fence = std::abs(clamped - below - 0.5) <= result.tolerance;
  const int difference = std::abs(level - expected);
  ++result.samples;
  result.difference_max = std::max(result.difference_max, difference);
  if (difference == 0)
    ++result.exact;
  else if (on_the_fence && (level == below || level == below + 1))
    ++result.borderline;
  else
    ++result.wrong;
}

}  // namespace

verdict compare_with_reference(const image& before, const weights& filter, const image& after) {
  verdict result;
  result.tolerance = static_cast<double>(filter.height + filter.width + 2) * 0x1p-24 * 255 * filter.gain();
  const std::vector<double> factors(filter.values.begin(), filter.values.end());
  const auto rows = clamped_positions(before.height, filter.radius_y());
  auto columns = clamped_positions(before.width, filter.radius_x());
  for (std::size_t& column : columns) column *= before.channels;

  for (std::size_t y = 0; y < before.height; ++y) {
    for (std::size_t x = 0; x < before.width; ++x) {
      std::array<double, 3> sum{};
      for (std::size_t ky = 0; ky < filter.height; ++ky) {
        const std::uint8_t* row = before.samples.data() + rows[y + ky] * before.row_bytes();
        for (std::size_t kx = 0; kx < filter.width; ++kx) {
          const double factor = factors[ky * filter.width + kx];
          const std::uint8_t* pixel = row + columns[x + kx];
          for (std::size_t c = 0; c < 3; ++c) sum[c] += factor * pixel[c];
        }
      }
      const std::size_t at = y * before.row_bytes() + x * before.channels;
      for (std::size_t c = 0; c < 3; ++c) judge(sum[c], after.samples[at + c], result);
      if (before.channels == 4) judge(before.samples[at + 3], after.samples[at + 3], result);
    }
  }
  return result;
}

}  // namespace convolution
