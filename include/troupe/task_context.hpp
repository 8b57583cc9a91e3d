// What this file is for: what the body of a task may ask about its own run, and the devices that it holds.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>

#include <troupe/scope.hpp>
#include <troupe/view.hpp>

namespace troupe {

namespace detail {
class argument_sink;
}

/// A device that a task holds (see `resource`).
struct held_device {
  std::string name;  ///< of the executor: "cuda:1"
  device_kind kind = device_kind::cuda;
  int index = 0;  ///< among the devices of its kind, as `cudaSetDevice` takes it
};

/// A task context tells a body about its own run. A body that takes a `task_context&` before its other parameters gets
/// one. Valid while the body runs, on its thread only. this_task.hpp answers some of the same questions without a
/// context.
class task_context {
 public:
  /// The executor that runs this task, for instance "cpu:0".
  virtual const char* executor() const = 0;
  /// True once this task or its runtime was asked to stop. Long bodies check now and then, and return or throw.
  virtual bool stop_requested() const = 0;
  /// 1 for the first try, more for retries.
  virtual int attempt() const = 0;
  /// The devices that the task asked for with `{"gpu", n}`, its own until it ends.
  virtual std::span<const held_device> devices() const { return {}; }
  /// Used by the library: the view of the task's access number i.
  virtual detail::raw_view view_of(int access) = 0;
  /// Used by the library: where the arguments go instead of to a C++ body; null on CPUs.
  detail::argument_sink* sink() const { return sink_; }

 protected:
  detail::argument_sink* sink_ = nullptr;
  ~task_context() = default;
};

}  // namespace troupe
