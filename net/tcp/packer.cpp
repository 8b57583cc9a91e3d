// What this file is for: lz4 by its library.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/packer.hpp"

#include <lz4.h>

namespace troupe::net::tcp {

std::size_t pack(std::span<const std::byte> raw, std::span<std::byte> to) {
  const int n = LZ4_compress_default(reinterpret_cast<const char*>(raw.data()), reinterpret_cast<char*>(to.data()),
                                     static_cast<int>(raw.size()), static_cast<int>(to.size()));
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

bool unpack(std::span<const std::byte> packed, std::span<std::byte> to) {
  const int n = LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()), reinterpret_cast<char*>(to.data()),
                                    static_cast<int>(packed.size()), static_cast<int>(to.size()));
  return n >= 0 && static_cast<std::size_t>(n) == to.size();
}

}  // namespace troupe::net::tcp
