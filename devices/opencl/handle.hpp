// What this file is for: OpenCL's headers at the version used here, and owners of OpenCL's objects.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>
#include <utility>

namespace troupe::devices::opencl {

/// A reference to an object.
template <class T, cl_int (*Release)(T)>
class handle {
 public:
  handle() = default;
  explicit handle(T owned) : at_(owned) {}
  handle(handle&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
  handle& operator=(handle&& other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;
  ~handle() {
    if (at_) (void)Release(at_);
  }

  T get() const { return at_; }
  T release() { return std::exchange(at_, nullptr); }
  explicit operator bool() const { return at_ != nullptr; }

 private:
  T at_ = nullptr;
};

using context_handle = handle<cl_context, clReleaseContext>;
using queue_handle = handle<cl_command_queue, clReleaseCommandQueue>;
using event_handle = handle<cl_event, clReleaseEvent>;
using memory_handle = handle<cl_mem, clReleaseMemObject>;
using program_handle = handle<cl_program, clReleaseProgram>;
using kernel_handle = handle<cl_kernel, clReleaseKernel>;

}  // namespace troupe::devices::opencl
