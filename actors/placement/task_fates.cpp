// What this file is for: decisions about tasks that executors still have.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/task_fates.hpp"

#include <utility>

#include "actors/protocol/executor.hpp"

namespace troupe::detail {

void task_fates::fail_if_returned(task_record& t, std::exception_ptr why) { failures_.emplace(&t, std::move(why)); }

std::exception_ptr task_fates::take_failure(task_record& t) {
  if (failures_.empty()) return nullptr;
  auto found = failures_.extract(&t);
  return found ? std::move(found.mapped()) : nullptr;
}

void task_fates::add_lost_input(const executor& at, const overwritten_input& o) {
  lost_.emplace(o.task, lost_input{&at, o.array, o.tile});
}

std::vector<task_fates::lost_input> task_fates::take_lost_inputs(const task_record& t) {
  std::vector<lost_input> all;
  const auto [begin, end] = lost_.equal_range(&t);
  for (auto i = begin; i != end; ++i) all.push_back(i->second);
  lost_.erase(begin, end);
  return all;
}

void task_fates::forget_all_of(task_record& t) {
  failures_.erase(&t);
  lost_.erase(&t);
}

}  // namespace troupe::detail
