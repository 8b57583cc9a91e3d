// What this file is for: task records and arrays: records taken, and what happens to both at the end of their lives.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/detail/task.hpp>

namespace troupe::detail {

struct array_core;

/// Takes a clean record with one reference, waiting for its submission.
task_record* take_record(runtime_state&);
/// Destroys what `extra_of` has made for the task, if it has.
void drop_extra(task_record&) noexcept;
/// Frees an array that no handle and no task refers to.
void destroy(array_core&) noexcept;
/// Gives a record, its accesses' regions and its captures back. Nothing may refer to the record any more.
void recycle(task_record*) noexcept;
/// Does the same but for the record itself, which stays its owner's. No task is found unfinished any more whose record
/// has been cleared, and what it has written is known to those that see that.
void clear(task_record&) noexcept;
/// Destroys what the task has returned, if it has.
void drop_result(task_record&) noexcept;
/// Destroys the body and returns the regions, extra room and references of the accesses; the result stays.
void drop_inputs(task_record&) noexcept;

}  // namespace troupe::detail
