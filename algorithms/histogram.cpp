// What this file is for: the counting kernels of the histograms, for data of one and two dimensions.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/histogram.hpp"

#include <cmath>
#include <string>

#include "algorithms/histogram_text.hpp"

#include <troupe/offer.hpp>

extern "C" const char troupe_offers_histogram = 0;  // algorithms/CMakeLists.txt names it

namespace troupe::algorithms {

namespace {

using counts = view<std::uint64_t, 1>;

// Calls f(pointer, length) for every row of the view; rows are contiguous.
template <class T, class F>
void for_rows(const view<const T, 1>& v, const F& f) {
  f(v.data(), v.size(0));
}
template <class T, class F>
void for_rows(const view<const T, 2>& v, const F& f) {
  for (index_t y = 0; y < v.size(0); ++y) f(v.data() + y * v.stride(0), v.size(1));
}

template <int N>
constexpr auto count_bytes = kernel<in<std::uint8_t, N>, red<std::uint64_t, 1>>("count_bytes")
                                 .requiring(has_size(1, 0, 256))
                                 .on(cpu,
                                     [](view<const std::uint8_t, N> data, counts bins) {
                                       std::uint64_t* count = bins.data();
                                       for_rows(data, [&](const std::uint8_t* row, index_t n) {
                                         for (index_t i = 0; i < n; ++i) ++count[row[i]];
                                       });
                                     })
                                 .on(gpu, texts::of_rank(texts::count_bytes, N));

template <int N>
constexpr auto count_numbers =
    kernel<in<double, N>, double, double, red<std::uint64_t, 1>>("count_numbers")
        .requiring(not_empty(3))
        .on(cpu,
            [](view<const double, N> data, double low, double high, counts bins) {
              std::uint64_t* count = bins.data();
              const index_t last = bins.size(0) - 1;
              const double scale = static_cast<double>(bins.size(0)) / (high - low);
              for_rows(data, [&](const double* row, index_t n) {
                for (index_t i = 0; i < n; ++i) {
                  if (!(row[i] >= low && row[i] < high)) continue;  // also what is not a number
                  // Rounding may lift a number just below the upper limit into a bin that is not there; limits that are
                  // too far apart to be subtracted leave no number at all.
                  const double bin = (row[i] - low) * scale;
                  ++count[bin < static_cast<double>(last) ? static_cast<index_t>(bin) : last];
                }
              });
            })
        .on(gpu, texts::of_rank(texts::count_numbers, N));

const offer offered{count_bytes<1>, count_bytes<2>, count_numbers<1>, count_numbers<2>};

template <class T>
index_space<1> by_tiles(const array<T, 1>& a) {
  return grid(a.size(0)).chunks(a.tile(0));
}
template <class T>
index_space<2> by_tiles(const array<T, 2>& a) {
  return grid(a.size(0), a.size(1)).chunks(a.tile(0), a.tile(1));
}

// Options take memory in every task, so only where there is something to say.
template <class... A>
future<void> for_each_in(const scope& where, runtime& rt, const A&... call) {
  return where.is_any() ? rt.for_each(call...) : rt.for_each(task_options{.where = where}, call...);
}

void require(bool condition, const std::string& text) {
  if (!condition) throw error(errc::bad_argument, "histogram: " + text);
}

template <int N>
future<void> bytes(runtime& rt, const array<std::uint8_t, N>& data, const array<std::uint64_t, 1>& bins,
                   const scope& where) {
  require(data && bins, "an array handle is empty");
  require(bins.size(0) == 256, "bytes need 256 bins, but '" + bins.name() + "' has " + std::to_string(bins.size(0)));
  return for_each_in(where, rt, by_tiles(data), count_bytes<N>, read(data, one_to_one{}), reduce(bins));
}

template <int N>
future<void> numbers(runtime& rt, const array<double, N>& data, double low, double high,
                     const array<std::uint64_t, 1>& bins, const scope& where) {
  require(data && bins, "an array handle is empty");
  require(bins.size(0) > 0, "'" + bins.name() + "' has no bins");
  require(std::isfinite(low) && std::isfinite(high) && low < high, "the lower limit is not below the upper one");
  return for_each_in(where, rt, by_tiles(data), count_numbers<N>, read(data, one_to_one{}), low, high, reduce(bins));
}

}  // namespace

future<void> histogram(runtime& rt, const array<std::uint8_t, 1>& data, const array<std::uint64_t, 1>& bins,
                       const scope& where) {
  return bytes(rt, data, bins, where);
}
future<void> histogram(runtime& rt, const array<std::uint8_t, 2>& data, const array<std::uint64_t, 1>& bins,
                       const scope& where) {
  return bytes(rt, data, bins, where);
}
future<void> histogram(runtime& rt, const array<double, 1>& data, double low, double high,
                       const array<std::uint64_t, 1>& bins, const scope& where) {
  return numbers(rt, data, low, high, bins, where);
}
future<void> histogram(runtime& rt, const array<double, 2>& data, double low, double high,
                       const array<std::uint64_t, 1>& bins, const scope& where) {
  return numbers(rt, data, low, high, bins, where);
}

}  // namespace troupe::algorithms
