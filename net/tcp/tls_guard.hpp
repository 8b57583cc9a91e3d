// What this file is for: looks at what a stranger sends before TLS does, and stops what would cost memory.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// OpenSSL takes the memory for a handshake message when it sees the message's length, up to 128 KiB of it. No honest
// first message is longer than 16 KiB. Messages that are encrypted already have limits in OpenSSL's own options.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::net::tcp {

class tls_guard {
 public:
  static constexpr std::size_t message_max = 16u << 10;
  /// The bound of all that comes before the stranger is known.
  static constexpr std::size_t bytes_max = 64u << 10;

  /// The next bytes of the wire; false: no more of this one.
  bool pass(std::span<const std::byte> bytes) {
    total_ += bytes.size();
    if (total_ > bytes_max) return false;
    for (const std::byte b : bytes) {
      if (!pass(std::to_integer<std::uint8_t>(b))) return false;
    }
    return true;
  }

 private:
  static constexpr std::uint8_t handshake = 22;

  bool pass(std::uint8_t b) {
    if (head_ < 5) {  // of a record: kind, version, length
      if (head_ == 0) kind_ = b;
      if (head_ >= 3) left_ = left_ << 8 | b;
      if (++head_ == 5 && left_ == 0) head_ = 0;
      return true;
    }
    if (kind_ == handshake && !pass_message(b)) return false;
    if (--left_ == 0) head_ = 0;
    return true;
  }

  bool pass_message(std::uint8_t b) {
    if (message_head_ == 4) {
      if (--message_left_ == 0) message_head_ = 0;
      return true;
    }
    if (message_head_ > 0) message_left_ = message_left_ << 8 | b;  // of a message: kind, length
    if (++message_head_ < 4) return true;
    if (message_left_ > message_max) return false;
    if (message_left_ == 0) message_head_ = 0;
    return true;
  }

  std::size_t total_ = 0, left_ = 0, message_left_ = 0;
  int head_ = 0, message_head_ = 0;
  std::uint8_t kind_ = 0;
};

}  // namespace troupe::net::tcp
