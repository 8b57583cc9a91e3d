// What this file is for: memory that lies in pieces, found by where its bytes belong in the whole.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace troupe::net::tcp {

template <class Byte>
class piece_map {
 public:
  piece_map() = default;
  explicit piece_map(std::vector<std::span<Byte>> pieces) : pieces_(std::move(pieces)) {
    std::erase_if(pieces_, [](const auto& p) { return p.empty(); });
    begins_.reserve(pieces_.size());
    for (const auto& p : pieces_) {
      begins_.push_back(size_);
      size_ += p.size();
    }
  }

  std::uint64_t size() const { return size_; }
  /// Returns what lies in one piece from there on.
  std::span<Byte> run(std::uint64_t offset) const {
    const auto next = std::upper_bound(begins_.begin(), begins_.end(), offset);
    const auto i = static_cast<std::size_t>(next - begins_.begin()) - 1;
    return pieces_[i].subspan(static_cast<std::size_t>(offset - begins_[i]));
  }
  /// Calls `f` with one run after the other, so many bytes in all.
  template <class F>
  void each(std::uint64_t offset, std::size_t bytes, F&& f) const {
    while (bytes > 0) {
      auto r = run(offset);
      r = r.first(std::min(bytes, r.size()));
      f(r);
      offset += r.size();
      bytes -= r.size();
    }
  }

 private:
  std::vector<std::span<Byte>> pieces_;
  std::vector<std::uint64_t> begins_;
  std::uint64_t size_ = 0;
};

}  // namespace troupe::net::tcp
