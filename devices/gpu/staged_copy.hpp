// What this file is for: a copy between the host's memory and a device's as bytes in a row, cut into pieces.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include <troupe/box.hpp>

#include "devices/accelerator.hpp"

namespace troupe::devices::gpu {

/// Lines of `width` bytes that are contiguous on both sides. In a staging buffer they lie behind each other. All in
/// bytes.
struct staged_copy {
  struct dimension {
    index_t count = 1, host = 0, device = 0;
  };
  /// Bytes [begin, end) of the row: whole lines, or a part of one.
  struct piece {
    index_t begin, end;
  };

  index_t width = 0;                          ///< 0: nothing to copy
  std::array<dimension, rank_max + 1> outer;  ///< slowest first; the last one is the rows of a block

  index_t bytes() const {
    index_t all = width;
    for (const dimension& d : outer) all *= d.count;
    return all;
  }
  /// Bytes from the first one of the host's to behind the last one.
  index_t host_reach() const {
    index_t last = width;
    for (const dimension& d : outer) last += (d.count - 1) * d.host;
    return last;
  }
  /// The next piece of at most so many bytes.
  piece next(index_t begin, index_t bytes_max) const {
    if (width >= bytes_max) return {begin, std::min(begin + bytes_max, (begin / width + 1) * width)};
    return {begin, std::min(begin + bytes_max / width * width, bytes())};
  }
  /// Calls `each(host, device, bytes, rows)` for blocks of rows whose distances are those of `outer.back()`.
  template <class Each>
  void for_each_block(piece p, Each each) const {
    const index_t rows_all = outer.back().count, last = (p.end + width - 1) / width;
    for (index_t line = p.begin / width; line < last;) {
      const index_t rows = std::min(rows_all - line % rows_all, last - line);
      index_t host = p.begin % width, device = host, rest = line;  // more than 0 inside a line only
      for (std::size_t d = outer.size(); d-- > 0; rest /= outer[d].count) {
        host += rest % outer[d].count * outer[d].host;
        device += rest % outer[d].count * outer[d].device;
      }
      each(host, device, std::min(width, p.end - p.begin), rows);
      line += rows;
    }
  }
  /// On the calling thread, between the host's memory and a buffer that holds the piece.
  void copy_host(piece p, std::byte* host, std::byte* buffer, bool in) const {
    for_each_block(p, [&](index_t at, index_t, index_t bytes, index_t rows) {
      for (index_t r = 0; r < rows; ++r, at += outer.back().host, buffer += bytes)
        std::memcpy(in ? buffer : host + at, in ? host + at : buffer, static_cast<std::size_t>(bytes));
    });
  }
  /// The whole row lies in the device's memory as it is.
  bool is_packed_there() const {
    index_t step = width;
    for (std::size_t d = outer.size(); d-- > 0; step *= outer[d].count)
      if (outer[d].count > 1 && outer[d].device != step) return false;
    return true;
  }
};

inline staged_copy plan_staged(const strides& host, const strides& device, const std::array<index_t, rank_max>& count,
                               std::size_t element) {
  staged_copy plan;
  const auto e = static_cast<index_t>(element);
  // Fastest first; neighbours that lie behind each other on both sides become one.
  std::array<staged_copy::dimension, rank_max + 1> dims{};
  dims[0] = {e, 1, 1};
  std::size_t n = 1;
  for (int d = rank_max - 1; d >= 0; --d) {
    if (count[d] <= 0) return plan;
    if (count[d] == 1) continue;
    auto& last = dims[n - 1];
    const staged_copy::dimension next{count[d], host[d] * e, device[d] * e};
    if (next.host == last.count * last.host && next.device == last.count * last.device)
      last.count *= next.count;
    else
      dims[n++] = next;
  }
  plan.width = dims[0].count;
  for (std::size_t d = 1; d < n; ++d) plan.outer[plan.outer.size() - d] = dims[d];
  return plan;
}

}  // namespace troupe::devices::gpu
