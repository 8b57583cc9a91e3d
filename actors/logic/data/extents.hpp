// What this file is for: which bytes of a file are in use.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure. take() uses the smallest gap that is large enough; give() joins neighbouring gaps; the file ends with the last
// use.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace troupe::logic {

class extents {
 public:
  /// Offsets are multiples of `align`.
  explicit extents(std::uint64_t align = 4096) : align_(align) {}

  std::uint64_t take(std::uint64_t bytes) {
    const std::uint64_t size = rounded(bytes);
    auto best = gaps_.end();
    for (auto g = gaps_.begin(); g != gaps_.end(); ++g)
      if (g->second >= size && (best == gaps_.end() || g->second < best->second)) best = g;
    used_ += bytes;
    if (best == gaps_.end()) {
      const std::uint64_t at = end_;
      end_ += size;
      return at;
    }
    const auto [at, room] = *best;
    gaps_.erase(best);
    if (room != size) gaps_.emplace(at + size, room - size);
    return at;
  }
  void give(std::uint64_t at, std::uint64_t bytes) {
    used_ -= bytes;
    auto g = gaps_.emplace(at, rounded(bytes)).first;
    if (const auto next = std::next(g); next != gaps_.end() && g->first + g->second == next->first) {
      g->second += next->second;
      gaps_.erase(next);
    }
    if (g != gaps_.begin())
      if (const auto before = std::prev(g); before->first + before->second == g->first) {
        before->second += g->second;
        gaps_.erase(g);
        g = before;
      }
    if (g->first + g->second != end_) return;
    end_ = g->first;
    gaps_.erase(g);
  }
  /// Bytes in use, without the padding of rounding.
  std::uint64_t used() const { return used_; }
  std::uint64_t end() const { return end_; }

 private:
  std::uint64_t rounded(std::uint64_t bytes) const { return (bytes + align_ - 1) / align_ * align_; }

  const std::uint64_t align_;
  std::map<std::uint64_t, std::uint64_t> gaps_;  // start, size
  std::uint64_t end_ = 0, used_ = 0;
};

}  // namespace troupe::logic
