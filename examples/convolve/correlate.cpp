// What this file is for: the hot loops of the filter, written so that the compiler vectorises them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "correlate.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace convolution {
namespace {

using troupe::index_t;

// Sums held at once: enough to hide the latency of additions, few enough for the registers (measured 32 to 128).
constexpr index_t strip = 64;
// Rows unpacked at once: bounds the scratch memory of a thread whatever the tile, and keeps it in the cache.
constexpr index_t band_rows = 32;

// Colour samples of some rows as floats, three a pixel, with room for a strip to read past the end of a row.
struct band {
  std::vector<float> samples;
  index_t stride = 0;
};

void unpack(const troupe::view<const std::uint8_t, 3>& source, index_t row_begin, index_t row_end, band& into) {
  const index_t columns = source.size(1);
  into.stride = columns * 3 + strip;
  into.samples.resize(static_cast<std::size_t>((row_end - row_begin) * into.stride));
  for (index_t y = row_begin; y < row_end; ++y) {
    const std::uint8_t* from = source.data() + y * source.stride(0);
    float* to = into.samples.data() + (y - row_begin) * into.stride;
    for (index_t x = 0; x < columns; ++x, from += source.stride(1), to += 3)
      for (index_t c = 0; c < 3; ++c) to[c] = from[c * source.stride(2)];
  }
}

// sums[i] = the filter over the samples that begin at from[i], for a strip of i. Neighbouring samples of one colour are
// three floats apart, so one multiplication serves 64 sums whatever their colour.
//
// The loop is compiled for three generations of vector units in one binary, the best one chosen when the program
// starts. Not under AddressSanitizer or ThreadSanitizer: the choice is made before they are ready.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
[[gnu::target_clones("avx512f", "avx2", "default"), gnu::optimize("O3")]]
#endif
void sum_strip(const float* from, index_t stride, const float* filter, index_t filter_stride, index_t height,
               index_t width, float* sums) {
  float total[strip] = {};
  for (index_t ky = 0; ky < height; ++ky, from += stride, filter += filter_stride) {
    float row_total[strip] = {};
    for (index_t kx = 0; kx < width; ++kx) {
      const float weight = filter[kx];
      const float* at = from + kx * 3;
      for (index_t i = 0; i < strip; ++i) row_total[i] += weight * at[i];
    }
    for (index_t i = 0; i < strip; ++i) total[i] += row_total[i];
  }
  std::copy(total, total + strip, sums);
}

// Written so that a NaN becomes 0 rather than an undefined conversion.
std::uint8_t to_level(float value) {
  const float clamped = value > 0.0f ? std::min(value, 255.0f) : 0.0f;
  return static_cast<std::uint8_t>(clamped + 0.5f);
}

}  // namespace

void correlate(troupe::view<const std::uint8_t, 3> source, troupe::view<const float, 2> filter,
               troupe::view<std::uint8_t, 3> result) {
  thread_local band unpacked;
  thread_local std::vector<float> sums;
  const index_t rows = result.size(0), columns = result.size(1), channels = result.size(2);
  const index_t height = filter.size(0), width = filter.size(1);
  sums.resize(static_cast<std::size_t>(columns * 3 + strip));

  for (index_t band_begin = 0; band_begin < rows; band_begin += band_rows) {
    const index_t band_end = std::min(rows, band_begin + band_rows);
    unpack(source, band_begin, band_end + height - 1, unpacked);
    for (index_t y = band_begin; y < band_end; ++y) {
      const float* from = unpacked.samples.data() + (y - band_begin) * unpacked.stride;
      for (index_t i = 0; i < columns * 3; i += strip)
        sum_strip(from + i, unpacked.stride, filter.data(), filter.stride(0), height, width, sums.data() + i);
      std::uint8_t* to = result.data() + y * result.stride(0);
      for (index_t x = 0; x < columns; ++x, to += result.stride(1))
        for (index_t c = 0; c < 3; ++c) to[c * result.stride(2)] = to_level(sums[static_cast<std::size_t>(x * 3 + c)]);
      if (channels < 4) continue;
      const std::uint8_t* alpha = &source(source.lo(0) + y + height / 2, source.lo(1) + width / 2, source.lo(2) + 3);
      to = result.data() + y * result.stride(0) + 3 * result.stride(2);
      for (index_t x = 0; x < columns; ++x) to[x * result.stride(1)] = alpha[x * source.stride(1)];
    }
  }
}

}  // namespace convolution
