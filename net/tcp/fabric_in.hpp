// What this file is for: transfers that arrive through a fabric: each part straight to where it belongs, and whole only
// once the peer has confirmed that what was read there was as it had to be.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "net/tcp/bulk_in.hpp"
#include "net/tcp/fabric_out.hpp"
#include "net/tcp/piece_map.hpp"

namespace troupe::net::tcp {

/// On one thread. What the peer says is not believed: these throw `error(protocol_error)`.
class fabric_in {
 public:
  void tell(bulk_in::arriving_told a, bulk_in::arrived_told b, say_told say) {
    arriving_ = std::move(a);
    arrived_ = std::move(b);
    say_ = std::move(say);
  }

  void offered(std::uint64_t transfer, std::uint64_t size, std::span<const std::byte> head);
  /// Where a part goes.
  std::span<std::byte> destination(std::uint64_t transfer, std::uint64_t offset, std::uint64_t bytes);
  void placed(std::uint64_t transfer, std::uint64_t offset);
  void kept(std::uint64_t transfer);
  /// Answers for all: they will not be whole. Nothing writes to their memory any more.
  void abort();

 private:
  struct transfer {
    std::vector<std::byte> head{};
    piece_map<std::byte> to{};
    std::uint64_t begun = 0, there = 0;  ///< bytes
  };
  struct part_in {
    std::size_t bytes = 0;
    std::vector<std::byte> scratch{};  ///< where it belongs in several pieces
  };

  bulk_in::arriving_told arriving_;
  bulk_in::arrived_told arrived_;
  say_told say_;
  std::map<std::uint64_t, transfer> open_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, part_in> parts_;
  std::uint64_t last_number_ = 0;
};

}  // namespace troupe::net::tcp
