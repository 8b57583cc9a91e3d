// What this file is for: copies of small boxes that a task has written, made by the thread that ran it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// Asks for a copy of what the task writes for an access, if that is one box of at most `bytes_max` bytes inside one
/// tile. The access has been described, and the task has its extra. Returns the bytes of the box; 0 if it is no such
/// access.
std::size_t ask_for_copy(task_record&, int access, std::size_t bytes_max);
/// Makes the copies that were asked for, after the body has committed and before the task is reported: later tasks may
/// change the tiles then. A copy for which there is no memory stays empty.
void make_written_copies(runtime_state&, task_record&) noexcept;

}  // namespace troupe::detail
