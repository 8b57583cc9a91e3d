// What this file is for: filtering a whole picture with troupe.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "image.hpp"
#include "kernel_file.hpp"
#include "report.hpp"

namespace convolution {

struct settings {
  std::size_t tile = 64;               ///< pixels along each side of a tile
  std::optional<std::size_t> groups;   ///< none: two, or one where there is only one core
  std::optional<std::size_t> threads;  ///< none: what this process may use
  std::string trace;                   ///< empty: none
  std::vector<std::string> devices;    ///< accelerators beside the core groups: "sim:0", or a kind: "cuda"
  std::size_t nodes = 0;               ///< other nodes of the cluster to wait for
};

struct outcome {
  image picture;
  std::uint64_t tiles = 0;
  std::vector<executor_share> shares;
  double seconds = 0;  ///< from the first task to the last, without the start of the runtime
};

/// Filters `picture`, which is lent to the runtime meanwhile and comes back unchanged. `watch(done, tiles)` is called
/// on this thread every so often. Throws `troupe::error`.
outcome convolve(image& picture, weights& filter, const settings& how,
                 const std::function<void(std::uint64_t, std::uint64_t)>& watch);

/// Filters tiles of other nodes until `wait_for_end` returns.
void work_for_others(const settings& how, const std::function<void()>& wait_for_end);

}  // namespace convolution
