// What this file is for: the executors of a runtime, by their numbers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "actors/protocol/executor.hpp"
#include "actors/protocol/own_lines.hpp"

namespace troupe::detail {

/// All executors; complete before the first task, so that any thread may read it.
class executor_list {
 public:
  /// `host_budget`: host memory has a budget.
  explicit executor_list(bool host_budget = false) : has_budget_(host_budget), limits_memory_(host_budget) {}

  void add(executor& e) {
    all_.push_back(&e);
    if (e.facts().kind != device_kind::node) near_.push_back(&e);
    if (e.facts().space != host_space) has_devices_ = limits_memory_ = true;
    if (e.facts().space == host_space) ++groups_;
  }
  executor& operator[](std::size_t i) const { return *all_[i]; }
  std::size_t size() const { return all_.size(); }
  const std::vector<executor*>& all() const { return all_; }
  /// The executors that are not nodes. Threads that submit read them once for each task.
  std::span<executor* const> near() const { return near_; }
  /// True if some executor has memory of its own.
  bool has_devices() const { return has_devices_; }
  /// True if there are core groups, before all other executors, and host memory has no budget: there is nothing to
  /// decide about a task that uses host memory and that one group only may run.
  bool may_release_early() const {
    return groups_ != 0 && all_[groups_ - 1]->facts().space == host_space && !has_budget_;
  }
  /// The number of core groups.
  std::size_t groups() const { return groups_; }
  /// True if some executor has memory of its own, or host memory has a budget: tasks may have to wait for data.
  bool limits_memory() const { return limits_memory_; }

 private:
  std::vector<executor*> all_;
  std::vector<executor*, own_lines<executor*>> near_;
  std::size_t groups_ = 0;  // executors that are cores
  bool has_devices_ = false;
  const bool has_budget_;
  bool limits_memory_;
};

}  // namespace troupe::detail
