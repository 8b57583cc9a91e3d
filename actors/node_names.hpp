// What this file is for: names of nodes and addresses, as wires have them and as decisions have them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "actors/protocol/node.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

inline node_id name_of(const net::node_id& n) { return {n.bytes}; }
inline net::node_id name_of(const node_id& n) { return {n.bytes}; }

inline node_address address_of(const net::endpoint& e) { return {e.host, e.port}; }
inline net::endpoint endpoint_of(const node_address& a) { return {a.host, a.port}; }
inline std::vector<node_address> addresses_of(const std::vector<net::endpoint>& all) {
  std::vector<node_address> to;
  for (const net::endpoint& e : all) to.push_back(address_of(e));
  return to;
}

}  // namespace troupe::detail
