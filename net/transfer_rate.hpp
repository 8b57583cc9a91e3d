// What this file is for: how fast a link carries bodies, measured while it does.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Several transfers share a link, so a rate for each would say too little: what counts is what has arrived in the time
// in which any was under way. No clock, no lock.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe::net {

class transfer_rate {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  /// Smaller bodies take as long as a round trip, and say nothing of how fast the link is.
  static constexpr std::uint64_t counted_bytes_min = 64u << 10;

  void begin(std::uint64_t bytes, time_point now) {
    if (bytes < counted_bytes_min) return;
    if (under_way_++ == 0) since_ = now;
  }
  /// Notes that a transfer has ended; all of its bytes are there, or it counts as none.
  void end(std::uint64_t bytes, bool whole, time_point now) {
    if (bytes < counted_bytes_min || under_way_ == 0) return;
    seconds_ += std::chrono::duration<double>(now - since_).count();
    since_ = now;
    --under_way_;
    if (whole) bytes_ += static_cast<double>(bytes);
    // So that it follows the link: of what is older than about a second of transfers less and less is left.
    for (; seconds_ > remembered_s; seconds_ /= 2) bytes_ /= 2;
  }
  /// 0: nothing has been measured.
  double bytes_per_second() const { return seconds_ > 0 ? bytes_ / seconds_ : 0; }

 private:
  static constexpr double remembered_s = 1;
  std::uint64_t under_way_ = 0;
  time_point since_{};
  double seconds_ = 0, bytes_ = 0;
};

}  // namespace troupe::net
