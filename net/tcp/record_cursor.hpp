// What this file is for: where one record of TLS ends and the next begins, in the bytes of a connection.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace troupe::net::tcp {

class record_cursor {
 public:
  static constexpr std::size_t header = 5;  ///< bytes: kind, version, length

  /// The next bytes of the wire.
  void pass(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      std::size_t n = 1;
      if (left_ != 0) {
        n = std::min(left_, bytes.size());
        left_ -= n;
      } else {
        length_ = (length_ << 8 | std::to_integer<std::size_t>(bytes.front())) & 0xffff;
        if (++seen_ == header) {
          seen_ = 0;
          left_ = length_;
        }
      }
      bytes = bytes.subspan(n);
    }
  }
  /// Returns how much of the record whose header has passed is still to come.
  std::size_t left() const { return left_; }
  /// Returns the length of the last record whose header has passed.
  std::size_t length() const { return length_; }

 private:
  std::size_t seen_ = 0, left_ = 0, length_ = 0;
};

}  // namespace troupe::net::tcp
