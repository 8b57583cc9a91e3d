// What this file is for: which executors may run a task: by its kernel, its scope, what it holds, and if they take any.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>

#include <troupe/detail/task.hpp>

#include "actors/logic/scheduling/admission.hpp"
#include "actors/logic/scheduling/scope.hpp"
#include "actors/protocol/executor_facts.hpp"

namespace troupe::logic {

/// The executors that exist, those of them that are withdrawn or paused, and what follows for each task. Owned by
/// placement's turn, but for `able_to_run`.
class eligibility {
 public:
  /// Executors that may run a task, those of them that may be given it now, and those that may run it if none were
  /// withdrawn, all nodes offered its kernel, and those that its scope may name joined: that may come before the task
  /// is ready.
  struct masks {
    executor_set all, now, ever;
  };

  /// Adds an executor; its id is the number of those added before.
  void add(const detail::executor_facts&);
  executor_set all() const { return all_; }
  const executor_set& nodes() const { return nodes_; }
  /// The core groups, and how many they are.
  const executor_set& cores() const { return cores_; }
  std::size_t groups() const { return groups_; }
  bool is_node(std::size_t i) const { return nodes_.contains(i); }
  /// Returns the executors that have a body of the kernel and can run it. Any thread, once all have been added.
  executor_set able_to_run(const detail::kernel_info& k) const { return abilities_.of(k); }

  /// Withdraws an executor: it gets no more tasks.
  void withdraw(std::size_t i) {
    withdrawn_.insert(i);
    ++changes_;
  }
  /// Ends a withdrawal, and a pause.
  void restore(std::size_t i) {
    withdrawn_.erase(i);
    pause(i, false);  // counts as a change, too
  }
  /// Pauses an executor, or ends its pause: while paused it gets no tasks; tasks that only it may run wait.
  void pause(std::size_t i, bool paused) {
    paused_.set(i, paused);
    ++changes_;
  }
  bool is_withdrawn(std::size_t i) const { return withdrawn_.contains(i); }
  bool is_paused(std::size_t i) const { return paused_.contains(i); }
  executor_set without_paused(executor_set s) const { return s -= paused_; }
  executor_set without_withdrawn(executor_set s) const { return s -= withdrawn_; }

  /// Returns a reference that is valid until the next call, or until an executor is added, paused, withdrawn or
  /// restored.
  const masks& masks_of(const detail::task_record&);
  /// Returns the executors that may run the task.
  executor_set mask_of(const detail::task_record&) const;
  /// Returns the nodes on which the task may run, whatever it holds.
  admission::eligible_nodes nodes_for(const detail::task_record&) const;
  /// True if a node that is not connected yet may run the task, too. Scopes name the executors that existed when the
  /// task was spawned.
  bool may_wait_for_nodes(const detail::task_record& t) const {
    return !(withdrawn_ & nodes_).empty() && t.kernel->portable &&
           (!t.extra || (t.extra->executors == executor_set::every() && t.extra->holds_at == detail::holds_nowhere));
  }

 private:
  executor_set mask_in_scope(const detail::task_record&) const;
  executor_set ever_able(const detail::kernel_info&) const;

  abilities abilities_;
  executor_set all_, withdrawn_, paused_, nodes_, cores_;
  std::size_t groups_ = 0;
  // Masks by kernel, of tasks without a scope: they are the same from task to task.
  struct known_masks {
    const detail::kernel_info* kernel = nullptr;
    const detail::shown_ids* nodes = nullptr;
    std::uint64_t changes = 0;
    std::uint32_t offered = 0;
    unsigned char kinds = 0, doubles = 0;
    masks found;
  };
  std::array<known_masks, 16> known_masks_;
  masks other_masks_;
  std::uint64_t changes_ = 1;  // counts changes of what masks depend on, beside kernels
};

}  // namespace troupe::logic
