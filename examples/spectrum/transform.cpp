// What this file is for: the transform: a body for cores, and a text in which a group of work-items takes a row.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "transform.hpp"

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace spectrum {

namespace {

using troupe::index_t;
using troupe::view;

constexpr int log2_length = 10;
static_assert(1 << log2_length == length);

int reversed(int i) {
  int r = 0;
  for (int b = 0; b < log2_length; ++b) r |= ((i >> b) & 1) << (log2_length - 1 - b);
  return r;
}

void on_cores(view<const float, 2> rows, view<const float, 1> table, view<float, 2> power) {
  std::array<float, length> re, im;
  for (index_t y = power.lo(0); y < power.hi(0); ++y) {
    for (int i = 0; i < length; ++i) re[static_cast<std::size_t>(reversed(i))] = rows(y, i) * table(i);
    im.fill(0);
    for (int half = 1; half < length; half *= 2)
      for (int first = 0; first < length; first += 2 * half)
        for (int k = 0; k < half; ++k) {
          const auto a = static_cast<std::size_t>(first + k), b = a + static_cast<std::size_t>(half);
          const float c = table(length + k * (bins / half)), s = table(length + bins + k * (bins / half));
          const float r = re[b] * c + im[b] * s, i = im[b] * c - re[b] * s;
          re[b] = re[a] - r;
          im[b] = im[a] - i;
          re[a] += r;
          im[a] += i;
        }
    for (int k = 0; k < bins; ++k) {
      const auto i = static_cast<std::size_t>(k);
      power(y, k) = re[i] * re[i] + im[i] * im[i];
    }
  }
}

// A work-item for each bin, so for each butterfly; a group for each row.
constexpr const char* on_device = R"(
GPU_KERNEL void spectrum(GPU_IN(float, rows), GPU_IN(float, table), GPU_OUT(float, power)) {
  GPU_LOCAL_ARRAY(float, re, 1024);
  GPU_LOCAL_ARRAY(float, im, 1024);
  const long y = GPU_LO(power, 0) + GPU_GLOBAL_ID(1);
  const int t = GPU_LOCAL_ID(0);
  const int inside = y < GPU_HI(power, 0);
  for (int n = 0; n < 2; ++n) {
    const int i = t + n * 512;
    int r = 0;
    for (int b = 0; b < 10; ++b) r |= ((i >> b) & 1) << (9 - b);
    re[r] = inside ? GPU_AT2(rows, y, i) * GPU_AT1(table, i) : 0;
    im[r] = 0;
  }
  GPU_BARRIER();
  for (int half_length = 1; half_length < 1024; half_length *= 2) {
    const int k = t & (half_length - 1);
    const int a = 2 * (t - k) + k, b = a + half_length;
    const float c = GPU_AT1(table, 1024 + k * (512 / half_length));
    const float s = GPU_AT1(table, 1024 + 512 + k * (512 / half_length));
    const float r = re[b] * c + im[b] * s, i = im[b] * c - re[b] * s;
    re[b] = re[a] - r;
    im[b] = im[a] - i;
    re[a] += r;
    im[a] += i;
    GPU_BARRIER();
  }
  if (inside) GPU_AT2(power, y, t) = re[t] * re[t] + im[t] * im[t];
}
)";

}  // namespace

std::vector<float> table() {
  std::vector<float> t;
  for (int i = 0; i < length; ++i)
    t.push_back(static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * i / length)));
  for (int k = 0; k < bins; ++k) t.push_back(static_cast<float>(std::cos(std::numbers::pi * k / bins)));
  for (int k = 0; k < bins; ++k) t.push_back(static_cast<float>(std::sin(std::numbers::pi * k / bins)));
  return t;
}

constinit const troupe::kernel<troupe::in<float, 2>, troupe::in<float, 1>, troupe::out<float, 2>> power =
    troupe::kernel<troupe::in<float, 2>, troupe::in<float, 1>, troupe::out<float, 2>>("spectrum")
        .on(troupe::cpu, &on_cores)
        .on(troupe::gpu, {on_device, "spectrum", {512, 1, 1}});

}  // namespace spectrum
