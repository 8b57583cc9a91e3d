// What this file is for: OpenCL's error codes in troupe's words, and the failure that a device does not recover from.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <troupe/error.hpp>

#include "devices/opencl/handle.hpp"

namespace troupe::devices::opencl {

/// "-5 CL_OUT_OF_RESOURCES".
std::string code_text(cl_int);
errc meaning(cl_int);
/// True where an allocator answers null.
bool is_no_room(cl_int);

/// The codes of one device. What it cannot go on from stays: every later call throws it again.
class code_check {
 public:
  /// `on_failure` is called when the device fails, before the error is thrown.
  code_check(std::string device, std::function<void()> on_failure)
      : device_(std::move(device)), on_failure_(std::move(on_failure)) {}

  /// Throws unless the code is CL_SUCCESS: "opencl:0 (model): clFinish answered -36 CL_INVALID_COMMAND_QUEUE".
  void operator()(cl_int code, const char* call);
  /// The same for a command that has ended with a negative status.
  void ended(cl_int status);
  /// Throws the failure that stays, if there is one.
  void alive() const {
    if (failure_) throw *failure_;
  }
  bool is_lost() const { return failure_ && failure_->code() == errc::device_lost; }
  const std::string& device() const { return device_; }

 private:
  [[noreturn]] void raise(errc, const std::string& text);

  std::string device_;
  std::function<void()> on_failure_;
  std::optional<error> failure_;
};

}  // namespace troupe::devices::opencl
