// What this file is for: parsing a kernel file and computing the default Gaussian.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "kernel_file.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>

namespace convolution {
namespace {

// 63 x 63 numbers of 24 digits are about 100 kB; more than this is some other file.
constexpr std::size_t file_bytes_max = 1 << 20;

constexpr std::string_view blanks = " \t\r\f\v";

// The beginning of a word as it may stand in a message, whatever bytes it holds.
std::string quoted(std::string_view word) {
  std::string text(word.substr(0, 20));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return "'" + text + (word.size() > 20 ? "...'" : "'");
}

// std::from_chars rather than streams: no locale can turn the decimal point into a comma.
double number(std::string_view word, const std::string& where) {
  std::string_view digits = word;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  double value = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (fault == std::errc::result_out_of_range) throw kernel_error(where + ": " + quoted(word) + " is out of range");
  if (fault != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(value))
    throw kernel_error(where + ": " + quoted(word) + " is not a number");
  return value;
}

std::vector<double> row_of(std::string_view line, const std::string& where) {
  std::vector<double> row;
  for (;;) {
    const auto begin = line.find_first_not_of(blanks);
    if (begin == line.npos) return row;
    line.remove_prefix(begin);
    const std::string_view word = line.substr(0, line.find_first_of(blanks));
    if (row.size() == side_max)
      throw kernel_error(where + ": more than " + std::to_string(side_max) + " numbers in a row");
    row.push_back(number(word, where));
    line.remove_prefix(word.size());
  }
}

weights to_weights(const std::vector<double>& values, std::size_t width, const std::string& name, bool raw) {
  double sum = 0, magnitude = 0;
  for (const double value : values) {
    sum += value;
    magnitude += std::abs(value);
  }
  // A sum that is zero but for rounding ("0.1 0.2 -0.3") is zero: dividing by it would give noise.
  if (!raw && std::abs(sum) <= 1e-9 * magnitude)
    throw kernel_error(name + ": the numbers add up to zero and cannot be divided by their sum; use --raw");
  const double scale = raw ? 1 : 1 / sum;
  // 255 times the gain, and sums of it, must stay inside float.
  if (!(magnitude * std::abs(scale) < std::numeric_limits<float>::max() / 1024))
    throw kernel_error(name + ": the numbers are too large for sums in float");
  weights result{values.size() / width, width, {}};
  result.values.reserve(values.size());
  for (const double value : values) result.values.push_back(static_cast<float>(value * scale));
  return result;
}

}  // namespace

double weights::gain() const {
  double sum = 0;
  for (const float value : values) sum += std::abs(static_cast<double>(value));
  return sum;
}

weights gaussian(std::size_t side, double sigma) {
  const auto radius = static_cast<double>(side / 2);
  std::vector<double> values;
  for (double y = -radius; y <= radius; ++y)
    for (double x = -radius; x <= radius; ++x) values.push_back(std::exp(-(x * x + y * y) / (2 * sigma * sigma)));
  return to_weights(values, side, "gaussian", false);
}

weights parse_kernel(std::string_view text, const std::string& name, bool raw) {
  std::vector<double> values;
  std::size_t width = 0, height = 0, line_number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string where = name + ":" + std::to_string(++line_number);
    const std::vector<double> row = row_of(line, where);
    if (row.empty()) continue;
    if (height == side_max) throw kernel_error(where + ": more than " + std::to_string(side_max) + " rows");
    if (height > 0 && row.size() != width)
      throw kernel_error(where + ": a row of " + std::to_string(row.size()) + " numbers, where the rows above have " +
                         std::to_string(width));
    width = row.size();
    ++height;
    values.insert(values.end(), row.begin(), row.end());
  }
  if (height == 0) throw kernel_error(name + ": holds no numbers");
  if (height % 2 == 0 || width % 2 == 0)
    throw kernel_error(name + ": " + std::to_string(height) + " rows of " + std::to_string(width) +
                       " numbers; both must be odd, so that there is a centre");
  return to_weights(values, width, name, raw);
}

weights read_kernel(const std::string& path, bool raw) {
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "rb"), close);
  if (!file) throw kernel_error("cannot read the kernel " + path + ": " + std::strerror(errno));
  std::string text(file_bytes_max + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get())) throw kernel_error("cannot read the kernel " + path + ": " + std::strerror(errno));
  if (text.size() > file_bytes_max) throw kernel_error(path + ": too long for a kernel file");
  return parse_kernel(text, path, raw);
}

}  // namespace convolution
