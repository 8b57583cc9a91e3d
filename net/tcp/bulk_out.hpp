// What this file is for: transfers that are sent: they take turns by chunks, each from the memory where it lies.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <span>
#include <vector>

#include "net/codec.hpp"
#include "net/tcp/chunk.hpp"
#include "net/tcp/chunk_hash.hpp"
#include "net/tcp/packing_choice.hpp"
#include "net/tcp/piece_cursor.hpp"
#include "net/tcp/stream.hpp"
#include "net/transport.hpp"

namespace troupe::net::tcp {

struct transfer_out {
  std::vector<std::byte> head;
  const_pieces body;
  std::function<void(bool)> done;
};

/// On one thread.
class bulk_out {
 public:
  using clock = std::function<std::chrono::steady_clock::time_point()>;

  explicit bulk_out(std::size_t chunk_bytes, clock now = std::chrono::steady_clock::now)
      : chunk_bytes_(chunk_bytes), now_(std::move(now)) {}

  void add(transfer_out t) { waiting_.push_back(std::move(t)); }
  /// Goes before what has not been begun.
  void say(part, std::uint64_t transfer, std::uint64_t size, std::span<const std::byte> content);
  bool idle() const { return segments_.empty() && turns_.empty() && waiting_.empty() && notes_.empty(); }
  /// Writes about so many bytes. `moved`: there may be more to do, or nothing; otherwise why not.
  outcome step(stream&, std::size_t budget);
  /// Answers for all of them: they will not be sent.
  void abort();

 private:
  struct turn {
    std::uint64_t number = 0, size = 0, at = 0;
    std::vector<std::byte> head{};
    piece_cursor<const std::byte> body{};
    std::function<void(bool)> done{};
    bool begun = false;
  };

  void prepare();
  void begin(turn&);
  void next_chunk(turn&);
  /// Returns what goes over the wire for a chunk, if it is to be packed and gets smaller by it; otherwise nothing.
  std::span<const std::byte> packed(const std::vector<std::span<const std::byte>>& body, std::size_t size);
  double seconds_since(std::chrono::steady_clock::time_point) const;
  void finish_turn();
  moved write(stream&);

  const std::size_t chunk_bytes_;
  const clock now_;
  std::deque<transfer_out> waiting_;
  std::list<turn> turns_;  ///< the first is the one whose part is being written
  std::uint64_t last_number_ = 0;
  writer notes_;
  bool saying_ = false;  ///< the part that is being written is made of notes

  writer gathered_;
  std::vector<std::span<const std::byte>> segments_;  ///< of the part that is being written
  std::size_t segment_ = 0, at_ = 0;
  bool sums_ =
      true;  ///< no: each record of TLS has a checksum, and a stronger one; only what is packed has its own too
  chunk_hash hash_;

  packing_choice choice_;
  std::vector<std::byte> raw_, packed_;
  std::chrono::steady_clock::time_point part_began_{};
};

}  // namespace troupe::net::tcp
