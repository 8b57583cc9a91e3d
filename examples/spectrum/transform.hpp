// What this file is for: the power spectrum of rows of samples, on cores and on accelerators.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <troupe/troupe.hpp>

namespace spectrum {

/// Samples of a row, and what is told of it: the power at frequencies 0 to half of the rate, without the last one.
inline constexpr int length = 1024, bins = length / 2;
/// Rows that are transformed by one call.
inline constexpr int rows_max = 16;

/// What the transform needs beside the samples, in one array: the window (Hann's), then cosines, then sines of the
/// angles 0 to pi.
inline constexpr int table_size = length + 2 * bins;
std::vector<float> table();

/// Reads rows of samples, and the table, and writes their power, row by row. A fast Fourier transform (Cooley, Tukey
/// 1965) of radix two, decimation in time.
extern const troupe::kernel<troupe::in<float, 2>, troupe::in<float, 1>, troupe::out<float, 2>> power;

}  // namespace spectrum
