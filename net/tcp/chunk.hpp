// What this file is for: what stands before each part of a transfer on a bulk connection.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/codec.hpp"

namespace troupe::net::tcp {

inline constexpr std::size_t transfers_max = 8;    ///< under way at once, in each direction
inline constexpr std::size_t head_max = 4u << 10;  ///< bytes of what describes a transfer
/// Pieces shorter than this on average are gathered: a call for each would cost more than copying them.
inline constexpr std::size_t scattered_below = 4u << 10;

enum class part : std::uint8_t {
  begin = 1,  ///< `offset` is the size of the whole; what follows is the head
  chunk = 2,
  // Notes, of a session that has a fabric for its bodies. Their transfers have numbers of their own.
  fabric = 3,  ///< this side has one; what follows says which, its address, and what to carry
  ready = 4,   ///< what was sent through the fabric has arrived here
  offer = 5,   ///< a transfer through it; otherwise like `begin`
  take = 6,    ///< there is memory for it
  leave = 7,   ///< it is not wanted
  have = 8,    ///< all of it is there
  kept = 9,    ///< and the memory that it was read from was as it had to be until now
};

inline bool is_note(part p) { return p >= part::fabric; }
inline constexpr std::size_t note_max = 16u << 10;  ///< bytes that follow one

enum class packing : std::uint8_t { none = 0, lz4 = 1 };

struct chunk_header {
  static constexpr std::size_t bytes = 40;

  part what = part::chunk;
  packing how = packing::none;
  std::uint64_t transfer = 0;  ///< counted from 1, a number for each
  std::uint64_t offset = 0;
  std::uint32_t raw = 0;     ///< bytes of the chunk
  std::uint32_t stored = 0;  ///< bytes that follow
  std::uint64_t hash = 0;    ///< XXH3-64 of the raw bytes; of a chunk through TLS only if it is packed

  void write(writer& w) const {
    w.fixed(what);
    w.fixed(how);
    w.fixed(std::uint16_t{0});
    w.fixed(raw);
    w.fixed(transfer);
    w.fixed(offset);
    w.fixed(hash);
    w.fixed(stored);
    w.fixed(std::uint32_t{0});
  }
  static chunk_header read(std::span<const std::byte> from) {
    reader r(from);
    chunk_header h;
    h.what = r.fixed<part>();
    h.how = r.fixed<packing>();
    const auto zero = r.fixed<std::uint16_t>();
    h.raw = r.fixed<std::uint32_t>();
    h.transfer = r.fixed<std::uint64_t>();
    h.offset = r.fixed<std::uint64_t>();
    h.hash = r.fixed<std::uint64_t>();
    h.stored = r.fixed<std::uint32_t>();
    const auto none = r.fixed<std::uint32_t>();
    r.end();
    if (h.what < part::begin || h.what > part::kept || h.how > packing::lz4 || zero != 0 || none != 0)
      throw error(errc::protocol_error, "what stands before a chunk of a transfer makes no sense");
    return h;
  }
};

}  // namespace troupe::net::tcp
