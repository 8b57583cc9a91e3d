// What this file is for: the errors that reach those who wait for a task.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <string>

#include <troupe/detail/task.hpp>
#include <troupe/error.hpp>

namespace troupe::detail {

/// The body of `t` threw `cause` on `executor` at this attempt.
std::exception_ptr task_error(const task_record& t, const std::string& executor, int attempt, std::exception_ptr cause,
                              errc code = errc::task_failed);
/// Somebody asked `t` to stop.
std::exception_ptr cancelled_error(const task_record& t, const std::string& executor);
/// The same, or that its deadline has passed, if that is why.
std::exception_ptr stopped_error(const task_record& t, const std::string& executor);
/// Nobody is there who could run `t`.
std::exception_ptr refused_error(const task_record& t, errc, const std::string& why);
/// Throws the task's error, if it has one; a failure that came from another task is told as such.
void throw_task_error(const task_record& t);
/// The text of an exception.
std::string text_of(const std::exception_ptr&) noexcept;

}  // namespace troupe::detail
