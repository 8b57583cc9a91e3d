// What this file is for: the errors that reach those who wait for a task.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <string>

#include <troupe/detail/task.hpp>
#include <troupe/error.hpp>

namespace troupe::detail {

/// The body of `t` threw `cause` on `executor` at this attempt; or it was not the body that failed, which `code` says.
std::exception_ptr task_error(const task_record& t, const std::string& executor, int attempt, std::exception_ptr cause,
                              errc code = errc::task_failed);
/// A recorded call has failed with `of_call`: what the run of its graph fails with, named as the call's root.
std::exception_ptr run_error(const task_record& run, const std::exception_ptr& of_call);
/// What a task fails with where it was not its body that threw: the code of troupe's own error, out_of_memory where there
/// was none for the runtime itself, task_failed for others.
errc failure_code(const std::exception_ptr&) noexcept;
/// Somebody asked `t` to stop.
std::exception_ptr cancelled_error(const task_record& t, const std::string& executor);
/// The same, or that its deadline has passed, if that is why.
std::exception_ptr stopped_error(const task_record& t, const std::string& executor);
/// Nobody is there who could run `t`.
std::exception_ptr refused_error(const task_record& t, errc, const std::string& why);
/// Throws the task's error, if it has one; a failure that came from another task is told as such.
void throw_task_error(const task_record& t);
/// Why a task failed, without who and where.
std::string reason_of(const std::exception_ptr&) noexcept;
/// The text of an exception.
std::string text_of(const std::exception_ptr&) noexcept;

/// Destroys what the body captured. What a destructor throws is the task's error, unless it has one.
void note_thrown_by_body(task_record&, const std::string& executor) noexcept;
inline void drop_body(task_record& t, const std::string& executor) noexcept {
  t.body_gone = true;
  try {
    t.ops->drop_body(t);
  } catch (...) {
    note_thrown_by_body(t, executor);
  }
}

}  // namespace troupe::detail
