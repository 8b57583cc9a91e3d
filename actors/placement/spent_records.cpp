// What this file is for: records of tasks that have ended go back to their pool.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/spent_records.hpp"

namespace troupe::detail {

void spent_records::give_back(shard_pool<task_record>& pool) {
  if (!first_) return;
  pool.give_chain(first_, last_, count_);
  first_ = last_ = nullptr;
  count_ = 0;
}

}  // namespace troupe::detail
