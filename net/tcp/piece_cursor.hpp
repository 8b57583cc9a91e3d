// What this file is for: a walk through memory that lies in pieces.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace troupe::net::tcp {

template <class Byte>
class piece_cursor {
 public:
  piece_cursor() = default;
  explicit piece_cursor(std::vector<std::span<Byte>> pieces) : pieces_(std::move(pieces)) {}

  static std::uint64_t size(const std::vector<std::span<Byte>>& pieces) {
    std::uint64_t n = 0;
    for (const auto& p : pieces) n += p.size();
    return n;
  }

  /// Appends where the next bytes lie, and goes on behind them. There have to be as many.
  void take(std::size_t bytes, std::vector<std::span<Byte>>& to) {
    while (bytes > 0) {
      const auto left = pieces_[piece_].subspan(at_);
      const std::size_t n = std::min(bytes, left.size());
      if (n > 0) to.push_back(left.first(n));
      bytes -= n;
      at_ += n;
      if (at_ == pieces_[piece_].size()) {
        ++piece_;
        at_ = 0;
      }
    }
  }

 private:
  std::vector<std::span<Byte>> pieces_;
  std::size_t piece_ = 0, at_ = 0;
};

}  // namespace troupe::net::tcp
