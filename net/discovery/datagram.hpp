// What this file is for: the datagram with which a node announces itself: written, signed, checked, read.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   magic 4 | version 1 | hash of the cluster's name 8 | node 16 | incarnation 8 | counter 8
//   | number of addresses, each: length, host, port 2 | HMAC-SHA256 of all before, its first 16 bytes
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "net/credentials/openssl.hpp"
#include "net/transport.hpp"

namespace troupe::net {

inline constexpr std::size_t datagram_max = 512, mac_bytes = 16, announced_max = 8;

struct announcement {
  node_id node{};
  std::uint64_t incarnation = 0;
  std::uint64_t counter = 0;  ///< grows with each datagram of the incarnation
  std::vector<endpoint> listens_on{};
};

enum class datagram_result { good, malformed, other_version, other_cluster, forged };

using cluster_hash = std::array<std::uint8_t, 8>;
cluster_hash hash_of_cluster(std::string_view name);

/// All but the signature. Addresses that find no room are left out.
std::vector<std::byte> write_announcement(const announcement&, const cluster_hash&);
/// Reads what is written there, by any host; `to` holds anything if it is not `good`.
datagram_result read_announcement(std::span<const std::byte> unsigned_part, const cluster_hash&, announcement& to);

/// Signs and checks for one cluster. Not for several threads at once.
class datagram_signer {
 public:
  /// At least one secret; the first signs, each is accepted.
  datagram_signer(std::string_view cluster, const std::vector<credentials::secret_bytes>& secrets);

  std::vector<std::byte> write(const announcement&);
  /// Nothing is made of a datagram before its signature has been found right.
  datagram_result read(std::span<const std::byte> datagram, announcement& to);

 private:
  using mac = std::array<std::uint8_t, mac_bytes>;
  mac sign(EVP_MAC_CTX&, std::span<const std::byte>);

  cluster_hash cluster_;
  std::vector<openssl::mac_context> keys_;
};

}  // namespace troupe::net
