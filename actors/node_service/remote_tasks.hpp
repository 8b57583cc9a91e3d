// What this file is for: the tasks of another node that run here, by its numbers and by their records.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "actors/node_service/transfer.hpp"

namespace troupe::detail {

/// Owns the tasks. Places of those that have ended are kept for the next ones: thousands a second come and go. Under
/// the service's lock.
class remote_tasks {
 public:
  bool contains(std::uint64_t id) const { return by_id_.contains(id); }
  bool empty() const { return by_id_.empty(); }
  /// Returns null for a number that no task has.
  remote_task* find(std::uint64_t id) {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second.get();
  }
  remote_task* of(task_record& t) {
    const auto found = by_task_.find(&t);
    return found == by_task_.end() ? nullptr : found->second;
  }

  /// Adds a task; `id` must be new. It has no record yet.
  remote_task& add(std::uint64_t id);
  /// Notes that the task has been given its record, and is found by it.
  void started(remote_task&);
  /// Takes the record from a task that has ended, and returns it.
  task_record* ended(remote_task&);
  /// Notes that a task is refused: nothing of this runtime's is in error for it.
  void note_refused(std::uint64_t id);
  /// True if a task that is there no more may have been refused.
  bool was_refused(std::uint64_t id) const {
    return id != 0 && (refused_.contains(id) || (id <= refused_before_ && !by_id_.contains(id)));
  }
  /// Removes a task. Its entry is not used again if it was asked to stop: that cannot be undone.
  void remove(remote_task&);

  /// Asks a task to stop; one that has not come yet is stopped as it starts.
  void stop(std::uint64_t id);

  template <class F>
  void each(F&& f) {
    for (auto& [id, t] : by_id_) f(*t);
  }

 private:
  /// Most entries that are kept for later tasks.
  static constexpr std::size_t idle_max = 1024;
  /// Most requests to stop that are kept for tasks that have not come.
  static constexpr std::size_t early_max = 65536;

  /// Most refused tasks that are remembered by their numbers.
  static constexpr std::size_t refused_max = 4096;

  using ids = std::unordered_map<std::uint64_t, std::unique_ptr<remote_task>>;
  using records = std::unordered_map<task_record*, remote_task*>;
  ids by_id_;
  records by_task_;
  std::vector<ids::node_type> idle_;
  std::vector<records::node_type> idle_records_;
  std::unordered_set<std::uint64_t> stopped_early_;
  std::set<std::uint64_t> refused_;
  std::uint64_t refused_before_ = 0;  // refused tasks up to this number may have been forgotten
  std::uint64_t newest_ = 0;          // the largest number that has come
};

}  // namespace troupe::detail
