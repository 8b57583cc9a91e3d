// What this file is for: the checksum of a chunk, computed while its bytes come by.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace troupe::net::tcp {

/// XXH3, 64 bits.
class chunk_hash {
 public:
  chunk_hash();
  ~chunk_hash();
  chunk_hash(const chunk_hash&) = delete;
  chunk_hash& operator=(const chunk_hash&) = delete;

  void start();
  void add(std::span<const std::byte>);
  std::uint64_t value() const;
  static std::uint64_t of(std::span<const std::byte>);

 private:
  struct inside;
  std::unique_ptr<inside> inside_;
};

}  // namespace troupe::net::tcp
