// What this file is for: what a side says of its fabric: which, where, and what to carry to it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "net/bulk_fabric.hpp"
#include "net/codec.hpp"

namespace troupe::net::tcp {

struct fabric_note {
  static constexpr std::size_t kind_max = 64;

  std::string kind{};
  fabric_token token{};
  std::vector<std::byte> address{};

  void write(writer& w) const {
    w.text(kind);
    w.raw(token.data(), token.size());
    w.bytes(address);
  }
  /// Throws `error(protocol_error)`.
  static fabric_note read(std::span<const std::byte> from) {
    reader r(from);
    fabric_note n;
    n.kind = r.text(kind_max);
    const auto token = r.raw(n.token.size());
    std::memcpy(n.token.data(), token.data(), token.size());
    const auto address = r.bytes();
    n.address.assign(address.begin(), address.end());
    r.end();
    return n;
  }
};

}  // namespace troupe::net::tcp
