// What this file is for: every error that troupe reports, each with a sentence on what the caller may do next.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {

/// An error code: what went wrong, and what the caller may do next.
enum class errc {
  bad_argument,        ///< the call is wrong: correct the argument that the message names
  no_executor,         ///< no executor in the scope can run the kernel: widen the scope or add a body
  no_resource,         ///< more of a resource is asked for than exists: ask for less, or configure or allow more
  uninitialized_read,  ///< a box was read that was never written: write it first
  overlapping_write,   ///< one call touches elements twice and changes them, or two of its chunks write the same ones:
                       ///< pass the array once (`update`), use disjoint boxes, change the mapper or use reduce
  out_of_bounds,       ///< an access outside what was declared: declare a larger box or choose a border
  task_failed,         ///< the body of a task threw: see the cause; retry if it may pass
  dependency_failed,   ///< a task that this one depends on failed: see the root task
  cancelled,           ///< the task was asked to stop
  would_deadlock,      ///< the wait can never end: wait outside the task, close the host view, or wait for another
  runtime_stopped,     ///< the runtime was shut down before the task ran: spawn it on a living runtime
  out_of_memory,       ///< memory could not be had, or a budget is too small: free handles or use smaller tiles
  io_failed,           ///< a file could not be read or written: check path and space
  compile_failed,      ///< a kernel's text does not compile for a device: see the log in the message
  device_failed,       ///< a device reported an error it cannot go on from: the task may run elsewhere
  device_lost,         ///< a device is gone: its tasks may run elsewhere
  data_lost,           ///< the only copy of data is gone with its device or node: compute or load it again
  not_supported,       ///< declared, but not available on any executor of this build
  disk_full,           ///< no room in the spill directory: free space or handles, then call again
  node_lost,           ///< a node is gone: its tasks may run elsewhere
  unreachable,         ///< nothing answers at an address: check it, and that the node there is up
  refused,             ///< a peer does not admit this node, or is not admitted: check secret, certificates and versions
  protocol_error,      ///< a peer sent what is not in the protocol: its session ends
  unknown_outcome,     ///< a task that must run once was running on a node that is gone: look at what it has done
  timed_out,           ///< a task had not ended by its deadline: give it longer, or run it elsewhere
  overrun,             ///< items of a stream came faster than a stage takes them: let them wait, or drop some
  // Names of an earlier release.
  poisoned [[deprecated("use dependency_failed")]] = dependency_failed,
  bad_frame [[deprecated("use protocol_error")]] = protocol_error,
};

/// The name of the code, as it is written in a program: "no_executor". For logs; what to do is in `what()`.
constexpr const char* to_string(errc code) noexcept {
  switch (code) {
    case errc::bad_argument: return "bad_argument";
    case errc::no_executor: return "no_executor";
    case errc::no_resource: return "no_resource";
    case errc::uninitialized_read: return "uninitialized_read";
    case errc::overlapping_write: return "overlapping_write";
    case errc::out_of_bounds: return "out_of_bounds";
    case errc::task_failed: return "task_failed";
    case errc::dependency_failed: return "dependency_failed";
    case errc::cancelled: return "cancelled";
    case errc::would_deadlock: return "would_deadlock";
    case errc::runtime_stopped: return "runtime_stopped";
    case errc::out_of_memory: return "out_of_memory";
    case errc::io_failed: return "io_failed";
    case errc::compile_failed: return "compile_failed";
    case errc::device_failed: return "device_failed";
    case errc::device_lost: return "device_lost";
    case errc::data_lost: return "data_lost";
    case errc::not_supported: return "not_supported";
    case errc::disk_full: return "disk_full";
    case errc::node_lost: return "node_lost";
    case errc::unreachable: return "unreachable";
    case errc::refused: return "refused";
    case errc::protocol_error: return "protocol_error";
    case errc::unknown_outcome: return "unknown_outcome";
    case errc::timed_out: return "timed_out";
    case errc::overrun: return "overrun";
  }
  return "unknown";
}

/// The base of all errors. `code()` is stable; `what()` is one line for people. A wrong call throws at once from that
/// call; errors of a task reach the threads that wait for it, as `task_failed`.
class error : public std::runtime_error {
 public:
  error(errc code, const std::string& text) : std::runtime_error(text), code_(code) {}
  errc code() const noexcept { return code_; }

 private:
  errc code_;
};

/// A task did not produce its result: its body threw, a task it depends on failed, or it was cancelled. A task that
/// depends on one that failed or missed its deadline has the code `dependency_failed`; a task that depends on one that
/// was cancelled has `cancelled`; `root_task()` names the other task in both cases. `what()` holds the names of the
/// task and of its executor, and the text of the original exception.
class task_failed : public error {
 public:
  task_failed(errc code, const std::string& text, std::string task, std::string executor, std::string root,
              int attempts, std::exception_ptr cause)
      : error(code, text),
        task_(std::move(task)),
        executor_(std::move(executor)),
        root_(std::move(root)),
        attempts_(attempts),
        cause_(std::move(cause)) {}

  /// The task that this error was asked from.
  const std::string& task() const noexcept { return task_; }
  /// The executor that ran the failing body; empty where no body ran.
  const std::string& executor() const noexcept { return executor_; }
  /// The task whose body failed first; equal to `task()` when it is this one.
  const std::string& root_task() const noexcept { return root_; }
  /// Number of times that the body was tried.
  int attempts() const noexcept { return attempts_; }
  /// The exception that the failing body threw; null for a cancellation.
  std::exception_ptr cause() const noexcept { return cause_; }
  /// Throws the original exception of the failing body, if there is one.
  void rethrow_cause() const {
    if (cause_) std::rethrow_exception(cause_);
  }

 private:
  std::string task_, executor_, root_;
  int attempts_;
  std::exception_ptr cause_;
};

}  // namespace troupe
