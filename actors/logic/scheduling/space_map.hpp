// What this file is for: memories, the executors that they belong to, and which can be copied from without the host.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/logic/data/directory.hpp"
#include "actors/protocol/memory_space.hpp"

namespace troupe::logic {

/// The memory spaces of this runtime. Links may be known before the executors are.
class space_map {
 public:
  /// Adds an executor's memory; the host's belongs to none.
  void add(detail::memory_space s, std::uint16_t executor) {
    count_ = std::max<std::size_t>(count_, s + 1u);
    name(s);
    if (s != detail::host_space) executor_[s] = executor;
  }
  /// True if all executors work in host memory.
  bool has_one() const { return count_ == 1; }
  /// Returns the executor of a space other than the host's.
  std::size_t executor_of(detail::memory_space s) const { return executor_[s]; }

  /// Notes that copies from one device space to another need not go through the host's memory.
  void connect(detail::memory_space from, detail::memory_space to) {
    name(std::max(from, to));
    reach_[to].insert(from);
  }
  /// Makes all of a device's copies go through the host's memory from now on.
  void disconnect(detail::memory_space s) {
    name(s);
    for (space_set& from : reach_) from.erase(s);
    reach_[s].clear();
  }
  bool reaches(detail::memory_space to, detail::memory_space from) const {
    return from != detail::no_space && to < reach_.size() && reach_[to].contains(from);
  }
  /// Returns the spaces that this one, which has been added, can copy from directly.
  const space_set& reached_by(detail::memory_space to) const { return reach_[to]; }

 private:
  void name(detail::memory_space s) {
    if (s < reach_.size()) return;
    reach_.resize(s + 1u);
    executor_.resize(s + 1u);
  }

  std::size_t count_ = 1;
  std::vector<space_set> reach_;
  std::vector<std::uint16_t> executor_;
};

}  // namespace troupe::logic
