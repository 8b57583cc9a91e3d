// What this file is for: what runtimes have measured, as a file's text: links of devices, times of kernels.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   troupe costs 1 <bytes that follow> <their checksum>
//   link <when> <in: latency ns, GB/s> <out: latency ns, GB/s> <hardware, to the end of the line>
//   time <when> <hardware's hash> <kernel> <size class> <ns>
//
// Pure: text and time are parameters. A text that is incomplete, of another version or damaged gives no table at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/calibration/links.hpp"

namespace troupe::detail {

/// Seconds since 1970.
using cost_time = std::int64_t;

struct link_cost {
  std::string hardware;  ///< device and processor; no line breaks
  cost_time when = 0;
  devices::link_speeds speeds;
};

struct kernel_cost {
  std::uint64_t hardware = 0, kernel = 0;
  unsigned size = 0;
  cost_time when = 0;
  float ns = 0;
};

struct cost_table {
  static constexpr std::size_t links_max = 256, times_max = 4096;
  /// Age at which measurements expire: a kernel that is never run again where it was slow would otherwise never be seen
  /// to have become fast.
  static constexpr cost_time seconds_max = 30 * 24 * 3600;

  std::vector<link_cost> links;
  std::vector<kernel_cost> times;

  /// Merges `newer`: its entries replace those of the same key, expired ones go; of all, the latest are kept.
  void merge(const cost_table& newer, cost_time now);
  const link_cost* find_link(std::string_view hardware) const;
};

std::string text_of(const cost_table&);
std::optional<cost_table> parse_costs(std::string_view);

}  // namespace troupe::detail
