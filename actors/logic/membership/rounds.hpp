// What this file is for: members in a random order, each once a round, while members come and go.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure. Rejected: a random member each time: some would not be looked at for very long (Das, Gupta, Motivala, "SWIM",
// 4.3).
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "actors/protocol/node.hpp"

namespace troupe::logic {

class rounds {
 public:
  using node_id = detail::node_id;

  explicit rounds(std::uint64_t seed) : random_(seed) {}

  /// Adds a member to this round, at a random position in the rest.
  void add(const node_id& n) {
    left_.push_back(n);
    std::swap(left_.back(), left_[random_() % left_.size()]);
  }
  bool is_over() const { return left_.empty(); }
  void begin(std::vector<node_id> all) {
    left_ = std::move(all);
    std::shuffle(left_.begin(), left_.end(), random_);
  }
  /// Returns the next member of the round, which may have gone since; nothing once the round is over.
  std::optional<node_id> next() {
    if (left_.empty()) return std::nullopt;
    const node_id n = left_.back();
    left_.pop_back();
    return n;
  }

 private:
  std::vector<node_id> left_;
  std::mt19937_64 random_;
};

}  // namespace troupe::logic
