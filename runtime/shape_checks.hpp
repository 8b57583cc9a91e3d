// What this file is for: a kernel's rules about the shapes of its arrays.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// Throws bad_argument if the task's arrays break one of its kernel's rules.
void check_shapes(const task_record&);

}  // namespace troupe::detail
