// What this file is for: histograms of tiled arrays.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Each function spawns one task per tile of the data and returns at once; every task counts into a private partial,
// and the partials are added to what `bins` held before when somebody reads it. So `bins` must have been written (for
// instance made by `runtime::filled`), and several histograms may be counted into one array. Counts are exact,
// on accelerators too. `where` says which executors may take part; the kernels are offered to other nodes.
#pragma once

#include <cstdint>

#include <troupe/troupe.hpp>

namespace troupe::algorithms {

/// Counts bytes: `bins` has 256 elements, one per value; else `error(bad_argument)`.
future<void> histogram(runtime&, const array<std::uint8_t, 1>& data, const array<std::uint64_t, 1>& bins,
                       const scope& where = {});
future<void> histogram(runtime&, const array<std::uint8_t, 2>& data, const array<std::uint64_t, 1>& bins,
                       const scope& where = {});

/// Counts numbers in `[low, high)`, cut into as many equal bins as `bins` has elements: x falls into bin
/// `floor((x - low) / (high - low) * bins)`. Numbers outside, and those that are not numbers, are not counted.
/// `error(bad_argument)` if there is no bin, or no number between the limits.
future<void> histogram(runtime&, const array<double, 1>& data, double low, double high,
                       const array<std::uint64_t, 1>& bins, const scope& where = {});
future<void> histogram(runtime&, const array<double, 2>& data, double low, double high,
                       const array<std::uint64_t, 1>& bins, const scope& where = {});

}  // namespace troupe::algorithms
