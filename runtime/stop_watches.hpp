// What this file is for: what ends a task from outside before it has started: a stop token, or a deadline.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/detail/engine.hpp>
#include <troupe/detail/task.hpp>

namespace troupe::detail {

/// Has the task end when its stop token says so, if it has not started by then.
void obey_stop_token(engine&, task_record&, task_extra&, const task_options&);
/// Has the task end at its deadline, beside its stop token; its body sees the token then.
void set_deadline(engine&, task_record&, task_extra&, const task_options&);

}  // namespace troupe::detail
