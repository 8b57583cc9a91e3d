// What this file is for: the kernels that a runtime has seen.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "actors/logic/scheduling/scope.hpp"

namespace troupe::detail {

/// Table of the kernels that a runtime has seen, by key. Lock-free to look up.
class kernel_table {
 public:
  const kernel_info* intern(const kernel_info&);
  /// Notes that executor `id`, a node, offers just the kernels with these keys; none: it has left.
  void offer(std::uint16_t id, const std::unordered_set<std::uint64_t>& keys);

 private:
  static constexpr std::size_t slots = 1024;
  std::array<std::atomic<const kernel_info*>, slots> table_{};
  std::mutex lock_;
  std::unordered_map<std::uint64_t, logic::executor_set> offered_;  // by key: nodes
  std::deque<kernel_info> kept_;
  std::deque<shown_ids> nodes_;  // of the kernels at the same index
};

}  // namespace troupe::detail
