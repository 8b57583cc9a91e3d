// What this file is for: records of tasks that have ended, gathered so that they go back to their pool as one chain.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <troupe/detail/task.hpp>

#include "actors/memory/shard_pool.hpp"

namespace troupe::detail {

/// A chain of records without references, linked by task_record::next. With placement's turn only.
class spent_records {
 public:
  /// Length of the chains that go back while work goes on.
  static constexpr std::size_t chain = 64;

  void add(task_record& t) {
    t.next = first_;
    if (!first_) last_ = &t;
    first_ = &t;
    ++count_;
  }
  std::size_t count() const { return count_; }
  void give_back(shard_pool<task_record>&);

 private:
  task_record* first_ = nullptr;
  task_record* last_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace troupe::detail
