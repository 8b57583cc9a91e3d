// What this file is for: what tasks are called in messages.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// Returns the task's name for messages: the call's name, else the kernel's.
inline std::string name_of(const task_record& t) {
  if (t.extra && !t.extra->options.name.empty()) return t.extra->options.name;
  return t.kernel ? t.kernel->name : "task";
}

}  // namespace troupe::detail
