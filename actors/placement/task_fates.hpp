// What this file is for: what has been decided about tasks that executors still have, for the time when they come back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <unordered_map>
#include <vector>

#include "actors/memory/host_tiles.hpp"

namespace troupe::detail {

class executor;

/// Failures of tasks that a device has and may have begun, and inputs that an executor has overwritten which a task
/// will need when it comes back. With placement's turn only.
class task_fates {
 public:
  /// A tile that was overwritten, and the executor that did it.
  struct lost_input {
    const executor* at;
    array_core* array;
    std::uint32_t tile;
  };

  /// Fails a task with `why` if it is returned; the first reason counts.
  void fail_if_returned(task_record&, std::exception_ptr why);
  /// Returns why the task, which was returned, fails, and forgets it; null: it does not.
  std::exception_ptr take_failure(task_record&);
  void add_lost_input(const executor& at, const overwritten_input&);
  /// Returns the inputs that a returned task has lost, and forgets them.
  std::vector<lost_input> take_lost_inputs(const task_record&);
  bool has_lost_inputs() const { return !lost_.empty(); }
  /// Forgets a task that has retired.
  void forget(task_record& t) {
    if (!failures_.empty() || !lost_.empty()) forget_all_of(t);
  }

 private:
  void forget_all_of(task_record&);

  std::unordered_map<task_record*, std::exception_ptr> failures_;
  std::unordered_multimap<const task_record*, lost_input> lost_;
};

}  // namespace troupe::detail
