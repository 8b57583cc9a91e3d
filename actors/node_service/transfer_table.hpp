// What this file is for: the transfers of a node service, by their records and by the numbers under which bytes come.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "actors/node_service/transfer.hpp"

namespace troupe::detail {

/// Owns the transfers. Under the service's lock.
class transfer_table {
 public:
  /// Adds a transfer, which has its record.
  transfer& add(std::unique_ptr<transfer> t) {
    task_record* const key = t->task;
    return *by_task_.emplace(key, std::move(t)).first->second;
  }
  /// Returns null if no transfer has that record.
  transfer* of(task_record* t) const {
    const auto found = by_task_.find(t);
    return found == by_task_.end() ? nullptr : found->second.get();
  }
  void remove(const transfer& t) { by_task_.erase(t.task); }
  bool empty() const { return by_task_.empty(); }
  template <class F>
  void each(F&& f) {
    for (auto& [task, t] : by_task_) f(*t);
  }

  // ---- bytes that come in -------------------------------------------------------------------------------------------
  std::uint64_t next_number() { return ++last_number_; }
  /// Has bytes under the transfer's number find it from now on.
  void await(transfer& t) { coming_.emplace(t.number, &t); }
  void await_no_more(const transfer& t) { coming_.erase(t.number); }
  /// Returns the transfer that awaits bytes under a number, or null.
  transfer* awaiting(std::uint64_t number) const {
    const auto found = coming_.find(number);
    return found == coming_.end() ? nullptr : found->second;
  }
  /// Lets bytes find only those that `keeps` agrees to.
  template <class F>
  void await_only(F&& keeps) {
    std::erase_if(coming_, [&](const auto& c) { return !keeps(*c.second); });
  }

 private:
  std::unordered_map<task_record*, std::unique_ptr<transfer>> by_task_;
  std::unordered_map<std::uint64_t, transfer*> coming_;  // by number
  std::uint64_t last_number_ = 0;
};

}  // namespace troupe::detail
