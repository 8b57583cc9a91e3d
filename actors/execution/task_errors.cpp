// What this file is for: wording of task errors.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/task_errors.hpp"

#include <new>

#include <troupe/error.hpp>

#include "actors/logic/data/array_core.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/task_name.hpp"

namespace troupe::detail {

std::string reason_of(const std::exception_ptr& e) noexcept {
  try {
    if (e) std::rethrow_exception(e);
  } catch (const task_failed& x) {
    return text_of(x.cause() ? x.cause() : e);
  } catch (...) {
  }
  return text_of(e);
}

errc failure_code(const std::exception_ptr& e) noexcept {
  try {
    if (e) std::rethrow_exception(e);
  } catch (const error& x) {
    return x.code();
  } catch (const std::bad_alloc&) {
    return errc::out_of_memory;
  } catch (...) {
  }
  return errc::task_failed;
}

bool has_run(const std::exception_ptr& e) noexcept {
  try {
    if (e) std::rethrow_exception(e);
  } catch (const task_failed& x) {
    return x.attempts() > 0;
  } catch (...) {
  }
  return false;
}

namespace {
std::string failure_text(const std::string& what, const std::string& executor, int attempt,
                         const std::exception_ptr& cause) {
  std::string text = "task " + what + (executor.empty() ? " was not run" : " failed on " + executor);
  if (attempt > 1) text += " after " + std::to_string(attempt) + " attempts";
  return text + ": " + text_of(cause);
}
}  // namespace

std::exception_ptr task_error(const task_record& t, const std::string& executor, int attempt, std::exception_ptr cause,
                              errc code) {
  const std::string name = name_of(t);
  const std::string text = failure_text("'" + name + "'", executor, attempt, cause);
  return std::make_exception_ptr(task_failed(code, text, name, executor, name, attempt, std::move(cause)));
}

std::exception_ptr run_error(const task_record& run, const std::exception_ptr& of_call) {
  try {
    if (of_call) std::rethrow_exception(of_call);
  } catch (const task_failed& x) {
    const std::string name = name_of(run);
    const std::string of_run = "'" + name + "'";  // a part of it on another node has its name
    const std::string what = x.task() == name ? of_run : "'" + x.task() + "' of " + of_run;
    const std::string text = x.cause() ? failure_text(what, x.executor(), x.attempts(), x.cause()) : x.what();
    return std::make_exception_ptr(
        task_failed(x.code(), text, name, x.executor(), x.root_task(), x.attempts(), x.cause()));
  } catch (const error& x) {  // of a device, or of a node with another part of the graph
    const std::string name = name_of(run);
    return std::make_exception_ptr(
        task_failed(x.code(), "task '" + name + "' was broken off: " + x.what(), name, "", name, 1, of_call));
  } catch (...) {
  }
  return of_call;
}

std::exception_ptr cancelled_error(const task_record& t, const std::string& executor) {
  const std::string name = name_of(t);
  return std::make_exception_ptr(
      task_failed(errc::cancelled, "task '" + name + "' was cancelled", name, executor, name, 0, nullptr));
}

bool is_past_deadline(const task_record& t, std::uint64_t now_ticks) {
  if (!t.extra || t.extra->due == 0 || now_ticks < t.extra->due) return false;
  *t.extra->overdue = std::max<std::uint64_t>(1, now_ticks);
  return true;
}

std::exception_ptr stopped_error(const task_record& t, const std::string& executor) {
  if (!t.extra || !t.extra->overdue || *t.extra->overdue == 0) return cancelled_error(t, executor);
  const std::string name = name_of(t);
  const std::string text = "task '" + name + "' had not ended" + (executor.empty() ? "" : " on " + executor) +
                           " by its deadline, " + std::to_string(t.extra->options.deadline.count()) +
                           " ms after the call: give it longer, or run it elsewhere";
  return std::make_exception_ptr(task_failed(errc::timed_out, text, name, executor, name, 0, nullptr));
}

std::exception_ptr refused_error(const task_record& t, errc code, const std::string& why) {
  const std::string name = name_of(t);
  return std::make_exception_ptr(
      task_failed(code, "task '" + name + "' was not run: " + why, name, "", name, 0, nullptr));
}

std::exception_ptr lost_copy_error(const array_core& a, std::uint32_t tile, const std::string& executor,
                                   const std::exception_ptr& why, const std::string& then) {
  return std::make_exception_ptr(error(errc::data_lost, "array '" + a.spec.name + "', tile " + std::to_string(tile) +
                                                            ": its only copy went with " + executor + then + ": " +
                                                            text_of(why)));
}

void note_thrown_by_body(task_record& t, const std::string& executor) noexcept {
  if (!t.error) t.error = task_error(t, executor, 1, std::current_exception());
}

void throw_task_error(const task_record& t) {
  if (is_left_behind(t)) {  // its body may still write the error
    const std::string name = name_of(t);
    throw task_failed(errc::runtime_stopped,
                      "task '" + name + "' was left behind: the runtime was shut down while it ran", name, "", name, 1,
                      nullptr);
  }
  if (!t.error) return;
  if (t.measured_ns != never_ran) std::rethrow_exception(t.error);
  const std::string name = name_of(t);
  try {
    std::rethrow_exception(t.error);
  } catch (const task_failed& root) {
    // A task that did not run because another was cancelled or stopped has the code of that one.
    const bool stopped = root.code() == errc::runtime_stopped || root.code() == errc::cancelled;
    throw task_failed(
        stopped ? root.code() : errc::dependency_failed,
        "task '" + name + "' did not run, because it depends on '" + root.root_task() + "': " + root.what(), name,
        root.executor(), root.root_task(), root.attempts(), root.cause());
  }
}

}  // namespace troupe::detail
