// What this file is for: the texts of the kernel dialect as strings; README.md says what the dialect is.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace troupe::devices::kernels {

/// Preludes, which stand before a kernel's text: the words of a target, then what all share.
extern const std::string_view prelude_cuda_hip, prelude_opencl, prelude_sim, prelude_common;

/// axpy, block_sum, histogram, dgemm.
extern const std::string_view core;
/// The kernels that GPUs fill memory with.
extern const std::string_view fill;
/// gather_1, gather_2, gather_4, gather_8, by the size of a word: boxes assembled from tiles, borders included.
extern const std::string_view gather;
/// gathers_1 to gathers_8: the same from up to nine tiles in one launch, for devices that take large arguments.
extern const std::string_view gathers;

/// The argument that follows the pointer of an array: `gpu_shape` as kernels see it. Strides and offset in elements.
struct shape {
  std::array<std::int64_t, 4> lo{}, hi{}, stride{};
  std::int64_t offset = 0;
};
static_assert(sizeof(shape) == 104);

}  // namespace troupe::devices::kernels
