// What this file is for: names of processes: 128 random bits of the system, and how they read.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include <troupe/error.hpp>

#include "net/transport.hpp"

namespace troupe::net {

node_id node_id::random() {
  node_id id;
  for (std::size_t got = 0; got < id.bytes.size();) {
    const ssize_t n = ::getrandom(id.bytes.data() + got, id.bytes.size() - got, 0);
    if (n > 0) {
      got += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      throw error(errc::io_failed, std::string("the system gives no random numbers: ") + std::strerror(errno));
    }
  }
  return id;
}

std::string node_id::text() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string s;
  for (const std::uint8_t b : bytes) {
    s += digits[b >> 4];
    s += digits[b & 15];
  }
  return s;
}

}  // namespace troupe::net
