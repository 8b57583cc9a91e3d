// What this file is for: names of nodes and addresses, as wires have them and as decisions have them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include "actors/protocol/node.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

inline node_id name_of(const net::node_id& n) { return {n.bytes}; }
inline net::node_id name_of(const node_id& n) { return {n.bytes}; }

inline node_address address_of(const net::endpoint& e) { return {e.host, e.port}; }
inline net::endpoint endpoint_of(const node_address& a) { return {a.host, a.port}; }
/// Members say so many of a process; more are refused as malformed.
inline constexpr std::size_t addresses_max = 8;
inline std::vector<node_address> addresses_of(const std::vector<net::endpoint>& all) {
  std::vector<node_address> to;
  for (std::size_t i = 0; i < all.size() && i < addresses_max; ++i) to.push_back(address_of(all[i]));
  return to;
}

}  // namespace troupe::detail
