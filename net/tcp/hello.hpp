// What this file is for: the first message of a connection and its answer: which process is there, and whether it fits.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The message and its answer begin with the same bytes in every version, so that those of another version can still be
// told why not:
// magic (u32), version (u16). The rest is for the same version only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/transport.hpp"

namespace troupe::net::tcp {

inline constexpr std::uint32_t magic = 0x45505254;  // "TRPE"
inline constexpr std::uint16_t protocol_version = 11;
inline constexpr std::size_t hello_max = 16u << 10;

enum class channel : std::uint8_t { control = 1, bulk = 2 };

/// How much the sender of this takes at once; the other side keeps to it.
struct limits {
  std::uint64_t frame_max = 0;
  std::uint64_t chunk_bytes = 0;
};

struct hello {
  std::uint16_t version = protocol_version;
  channel kind = channel::control;
  std::uint64_t number = 0;  ///< random, the same for both connections of a session
  /// The last session with that peer which the dialler has seen end; 0: none. See peers.hpp.
  std::uint64_t last = 0;
  identity who{};
  limits takes{};
};

enum class hello_result : std::uint8_t {
  welcome,
  other_version,
  other_cluster,
  no_member,  ///< the proof is not of this cluster
  yourself,
  duplicate,  ///< there is a session already, or one is about to be
  outdated,   ///< a later incarnation of the same process has been here
  unknown,    ///< a bulk connection to no session
  closing,
  taken,  ///< its name or its id is that of another process, which is there
};

struct answer {
  std::uint16_t version = protocol_version;
  hello_result what = hello_result::welcome;
  std::string text{};  ///< for people, of a refusal
  identity who{};      ///< of a welcome
  limits takes{};
};

std::vector<std::byte> encode(const hello&);
std::vector<std::byte> encode(const answer&);
/// Throw `error(protocol_error)`. Of another version only the version is read.
hello decode_hello(std::span<const std::byte>);
answer decode_answer(std::span<const std::byte>);

}  // namespace troupe::net::tcp
