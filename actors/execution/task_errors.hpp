// What this file is for: the errors that a wait for a task throws.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include <troupe/detail/task.hpp>
#include <troupe/error.hpp>

#include "actors/actor.hpp"
#include "actors/protocol/destruction.hpp"

namespace troupe::detail {

/// Returns the error of `t`, whose body threw `cause` on `executor` at this attempt; `code` tells if it did not.
std::exception_ptr task_error(const task_record& t, const std::string& executor, int attempt, std::exception_ptr cause,
                              errc code = errc::task_failed);
/// Returns the error of a graph's run of which a recorded call has failed with `of_call`; names the same root task.
std::exception_ptr run_error(const task_record& run, const std::exception_ptr& of_call);
/// Returns the code for a failure that no body threw: the code of troupe's own error, out_of_memory if the runtime
/// itself had no memory, else task_failed.
errc failure_code(const std::exception_ptr&) noexcept;
/// Returns the error of a task that was asked to stop.
std::exception_ptr cancelled_error(const task_record& t, const std::string& executor);
/// Returns true if a task that has not begun should have ended by now: the timer of its deadline may ring late where
/// the cores are busy. Notes that, for stopped_error.
bool is_past_deadline(const task_record&, std::uint64_t now_ticks);
/// Returns `cancelled_error`, or timed_out if the task was stopped because its deadline has passed.
std::exception_ptr stopped_error(const task_record& t, const std::string& executor);
/// Returns the error of a task that no executor here can run; `why` ends its sentence.
std::exception_ptr refused_error(const task_record& t, errc, const std::string& why);
/// Returns what the readers of a tile are told whose only copy went with `executor`. `then`: what has happened since.
std::exception_ptr lost_copy_error(const array_core&, std::uint32_t tile, const std::string& executor,
                                   const std::exception_ptr& why, const std::string& then = "");
/// Throws the task's error, if it has one; a failure that came from another task names that one.
void throw_task_error(const task_record& t);
/// Returns why a task failed, without the names of task and executor.
std::string reason_of(const std::exception_ptr&) noexcept;

/// True if the error of a task says that its body has run.
bool has_run(const std::exception_ptr&) noexcept;

/// Makes the exception that is being handled the task's error, unless it has one.
void note_thrown_by_body(task_record&, const std::string& executor) noexcept;
/// Destroys the captures of the body; an exception of a destructor becomes the task's error, unless it has one.
inline void drop_body(task_record& t, const std::string& executor) noexcept {
  t.body_gone = true;
  const destruction here;
  try {
    t.ops->drop_body(t);
  } catch (...) {
    note_thrown_by_body(t, executor);
  }
}

}  // namespace troupe::detail
