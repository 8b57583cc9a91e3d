// What this file is for: names of processes of a cluster where nothing is known of wires.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe::detail {

/// A process in a cluster, chosen at random when it starts.
struct node_id {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const node_id&) const = default;
};

struct node_id_hash {
  std::size_t operator()(const node_id& n) const {
    std::uint64_t h = 0xcbf29ce484222325u;
    for (const std::uint8_t b : n.bytes) h = (h ^ b) * 0x100000001b3u;
    return static_cast<std::size_t>(h);
  }
};

/// Where a process can be dialled.
struct node_address {
  std::string host{};
  std::uint16_t port = 0;

  auto operator<=>(const node_address&) const = default;
};

}  // namespace troupe::detail
