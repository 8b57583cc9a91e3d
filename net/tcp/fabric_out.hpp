// What this file is for: transfers that go out through a fabric: offered, sent by parts in turns, answered once kept.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "net/tcp/bulk_out.hpp"
#include "net/tcp/chunk.hpp"
#include "net/tcp/piece_map.hpp"

namespace troupe::net::tcp {

using say_told = std::function<void(part, std::uint64_t transfer, std::uint64_t size, std::span<const std::byte>)>;

/// On one thread.
class fabric_out {
 public:
  using send_told = std::function<void(std::uint64_t transfer, std::uint64_t offset, std::span<const std::byte>)>;

  void tell(say_told say, send_told send) {
    say_ = std::move(say);
    send_ = std::move(send);
  }
  void add(transfer_out);
  /// Note what the peer says: it wants a transfer or not, or has all of it. Throw `error(protocol_error)`.
  void taken(std::uint64_t transfer);
  void left(std::uint64_t transfer);
  void had(std::uint64_t transfer);
  /// The peer has read a part; its bytes.
  std::size_t sent(std::uint64_t transfer, std::uint64_t offset);
  /// Answers for all: they will not be sent. Nothing reads their memory any more.
  void abort();

 private:
  struct turn {
    piece_map<const std::byte> body{};
    std::vector<std::byte> head{};
    std::function<void(bool)> done{};
    std::uint64_t at = 0;
    int under_way = 0;
    bool taken = false, had = false;
  };
  using turns = std::map<std::uint64_t, turn>;

  void offer();
  void send_parts();
  void next_part(std::uint64_t number, turn&);
  turn& find(std::uint64_t number, bool taken);
  void finish(turns::iterator);

  say_told say_;
  send_told send_;
  std::deque<transfer_out> waiting_;
  turns turns_;
  std::list<std::uint64_t> order_;  ///< whose next part it is
  std::uint64_t last_number_ = 0;
  int under_way_ = 0;
  struct part_out {
    std::size_t bytes = 0;
    std::vector<std::byte> gathered{};  ///< of small pieces
  };
  std::map<std::pair<std::uint64_t, std::uint64_t>, part_out> parts_;
};

}  // namespace troupe::net::tcp
