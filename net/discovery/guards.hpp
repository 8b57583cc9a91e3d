// What this file is for: which datagrams are looked at, and which of them are news: limits per address, replays.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "net/transport.hpp"

namespace troupe::net {

using guard_time = std::chrono::steady_clock::time_point;

/// So many in a second, and as many at once after a second of quiet.
class bucket {
 public:
  bucket(int per_second, guard_time now) : rate_(per_second), left_(per_second), at_(now) {}
  bool has_one(guard_time now);
  void take() { left_ -= 1; }

 private:
  double rate_, left_;
  guard_time at_;
};

/// Bounds what is looked at, per address and in total. Addresses can be forged: what is remembered of them is bounded,
/// and an address that is forgotten begins anew, within the total.
class rate_limit {
 public:
  static constexpr std::size_t sources_max = 256;

  rate_limit(int each_per_second, int all_per_second, guard_time now)
      : each_per_second_(each_per_second), all_(all_per_second, now) {}
  bool allow(std::uint64_t source, guard_time now);

 private:
  struct entry {
    bucket left;
    guard_time seen;
  };
  int each_per_second_;
  bucket all_;
  std::unordered_map<std::uint64_t, entry> sources_;
};

/// Lets each datagram of a node through once, in any order among the last 64 of its latest incarnation. Asked only
/// about datagrams whose signature was right, so that no stranger can make it forget.
class replay_guard {
 public:
  static constexpr std::size_t nodes_max = 1024;

  bool is_new(const node_id&, std::uint64_t incarnation, std::uint64_t counter, guard_time now);

 private:
  struct entry {
    std::uint64_t incarnation = 0;
    std::uint64_t highest = 0;
    std::uint64_t seen = 0;  ///< bit i: highest - i
    guard_time heard{};
  };
  std::unordered_map<node_id, entry, node_id_hash> nodes_;
};

}  // namespace troupe::net
