// What this file is for: transfers that arrive: each chunk straight into the memory where it belongs, checked.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "net/tcp/chunk.hpp"
#include "net/tcp/chunk_hash.hpp"
#include "net/tcp/piece_cursor.hpp"
#include "net/tcp/stream.hpp"
#include "net/transport.hpp"

namespace troupe::net::tcp {

/// On one thread.
class bulk_in {
 public:
  using arriving_told = std::function<pieces(std::span<const std::byte> head, std::uint64_t bytes)>;
  using arrived_told = std::function<void(std::span<const std::byte> head, bool whole)>;
  using note_told = std::function<void(part, std::uint64_t transfer, std::uint64_t size, std::span<const std::byte>)>;

  /// No chunk is larger than that.
  explicit bulk_in(std::size_t chunk_max) : chunk_max_(chunk_max) {}
  void tell(arriving_told a, arrived_told b, note_told c = {}) {
    arriving_ = std::move(a);
    arrived_ = std::move(b);
    note_ = std::move(c);
  }

  /// Reads about so many bytes. `moved`: there may be more. Throws `error(protocol_error)`.
  outcome step(stream&, std::size_t budget);
  /// Returns the bytes of the part that is being read that have not come.
  std::size_t outstanding() const;
  /// Answers for all that were arriving: they will not be whole.
  void abort();

 private:
  struct transfer {
    std::vector<std::byte> head{};
    std::uint64_t size = 0, at = 0;
    piece_cursor<std::byte> to{};
    bool wanted = true;
  };

  void header_read();
  void begin_read();
  void note_read();
  void chunk_read();
  void expect_begin();
  void expect_note();
  void expect_head();
  void expect_chunk();
  /// In place, or where it can be copied from.
  std::span<const std::byte> unpacked(std::span<const std::byte> stored);
  /// Sets what the next bytes of the wire fill.
  void fill(std::span<std::byte> whole) { targets_.assign(1, whole); }
  void next_header();
  moved read(stream&);

  const std::size_t chunk_max_;
  arriving_told arriving_;
  arrived_told arrived_;
  note_told note_;
  std::map<std::uint64_t, transfer> open_;
  std::uint64_t last_number_ = 0;

  enum class state { header, head, body } state_ = state::header;
  std::array<std::byte, chunk_header::bytes> header_bytes_{};
  chunk_header header_{};
  std::vector<std::span<std::byte>> targets_{std::span<std::byte>(header_bytes_)};
  std::size_t target_ = 0, at_ = 0;
  std::vector<std::byte> head_, scratch_, unpacked_;
  std::vector<std::span<std::byte>> belongs_;  ///< where the chunk's bytes go in the end
  bool direct_ = false;                        ///< they are read there, without a stop
  bool sums_ = true;                           ///< no: TLS has looked after that, but for what was packed
  bool hashes_ = false;                        ///< what is read is what the checksum is of
  chunk_hash hash_;
};

}  // namespace troupe::net::tcp
