// What this file is for: a node's knowledge of others as a few numbers: equal numbers mean equal knowledge.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure. Kept up with each change, whatever the number of nodes. Each sum covers the nodes whose ids fall to it: sums
// that differ between two nodes show where to look.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/protocol/membership.hpp"

namespace troupe::logic {

class record_sums {
 public:
  static constexpr std::size_t parts = 64;

  static std::size_t part_of(const detail::node_id& n) { return detail::node_id_hash{}(n) % parts; }
  /// Returns the contribution of a record that counts.
  static std::uint64_t sum_of(const detail::node_record& r) {
    return mixed(detail::node_id_hash{}(r.node) + mixed(r.incarnation + mixed(std::uint64_t{r.round} + 1)));
  }

  /// Adds or removes a contribution: a second change with the same sum undoes the first.
  void change(const detail::node_id& n, std::uint64_t sum) { sums_[part_of(n)] ^= sum; }
  /// Puts the contribution `now` of a record in the place of `before`; 0: it does not count.
  void replace(const detail::node_id& n, std::uint64_t before, std::uint64_t now) {
    change(n, before);
    change(n, now);
    count_ += (now != 0 ? 1 : 0) - (before != 0 ? 1 : 0);
  }
  /// The number of records that count.
  std::size_t count() const { return static_cast<std::size_t>(count_); }
  std::uint64_t total() const {
    std::uint64_t all = 0;
    for (const std::uint64_t s : sums_) all ^= s;
    return all;
  }
  std::vector<std::uint64_t> all() const { return {sums_.begin(), sums_.end()}; }

 private:
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  std::array<std::uint64_t, parts> sums_{};
  std::ptrdiff_t count_ = 0;
};

}  // namespace troupe::logic
