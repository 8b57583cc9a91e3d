// Sizes of gemm_work.hpp.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "gemm_work.hpp"

#include <algorithm>
#include <cmath>

namespace bench {

out_of_core_problem::out_of_core_problem(std::uint64_t quota) : quota_bytes(quota) {
  const double side = std::sqrt(4.0 * static_cast<double>(quota) / 3 / sizeof(float));
  const auto wanted = static_cast<std::size_t>(side) / tiles;
  const std::size_t unit = wanted >= 1024 ? 128 : 8;
  tile = std::max(unit, wanted / unit * unit);
}

}  // namespace bench
