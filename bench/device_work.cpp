// Fresh data and proofs of device_work.hpp.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "device_work.hpp"

#include "workloads.hpp"

#include <algorithm>
#include <cmath>

namespace bench {

void check_stirred(const std::uint32_t* elements, std::size_t count, std::size_t times) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t expected = 1;
    for (std::size_t k = 0; k < times; ++k) expected = expected * stir_factor + static_cast<std::uint32_t>(i);
    if (elements[i] != expected) throw wrong_answer("a kernel did not run exactly " + std::to_string(times) + " times");
  }
}

void flow_problem::fill(double* data) {
  base_ += 1000;
  for (std::size_t i = 0; i < from.size(); ++i) data[i] = base_ + static_cast<double>(i);
}

bool flow_problem::right(const double* results, std::size_t first, std::size_t count) const {
  bool all = true;
  for (std::size_t i = 0; i < count; ++i)
    all = all && results[i] == (base_ + static_cast<double>(first + i)) * 0.5 + 1.0;  // exact
  return all;
}

filter_problem::filter_problem()
    : image(side * side), weights(width * width), result(side * side), base_(side * side), expected_(side * side) {
  lcg random;
  for (auto& pixel : base_) pixel = static_cast<float>(random() % 256) / 256.0F;
  for (auto& weight : weights) weight = static_cast<float>(random() % 64 + 1) / 4096.0F;
  const auto clamped = [](std::size_t at, std::size_t offset) {  // at + offset - radius, inside
    return std::min(std::max(at + offset, radius) - radius, side - 1);
  };
  for (std::size_t y = 0; y < side; ++y)
    for (std::size_t x = 0; x < side; ++x) {
      double total = 0;
      for (std::size_t v = 0; v < width; ++v)
        for (std::size_t u = 0; u < width; ++u)
          total += static_cast<double>(weights[v * width + u]) *
                   static_cast<double>(base_[clamped(y, v) * side + clamped(x, u)]);
      expected_[y * side + x] = total;
    }
}

void filter_problem::fill(float* pixels) {
  scale_ = scale_ >= 8 ? 1 : scale_ * 2;  // exact
  for (std::size_t i = 0; i < base_.size(); ++i) pixels[i] = base_[i] * scale_;
}

void filter_problem::check(const float* pixels) const {
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    const double expected = expected_[i] * static_cast<double>(scale_);
    if (!(std::abs(static_cast<double>(pixels[i]) - expected) <= 1e-4 * expected + 1e-6))
      throw wrong_answer("pixel " + std::to_string(i) + " of the filtered image is " + std::to_string(pixels[i]) +
                         ", not " + std::to_string(expected));
  }
}

}  // namespace bench
