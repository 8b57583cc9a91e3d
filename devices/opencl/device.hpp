// What this file is for: one OpenCL device as an accelerator.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Memory is cl_mem, a lane an in-order queue, a ticket the event of a marker. OpenCL cannot take back what is enqueued:
// closing waits for all of it, but for a device that is lost.
#pragma once

#include <memory>

#include "devices/accelerator.hpp"
#include "devices/opencl/handle.hpp"

namespace troupe::devices::opencl {

std::unique_ptr<accelerator> open_device(cl_device_id, int index, int lanes, std::uint64_t memory_limit);

/// A text that the device tells of itself; empty where it does not.
std::string device_text(cl_device_id, cl_device_info);
std::string platform_text(cl_platform_id, cl_platform_info);

}  // namespace troupe::devices::opencl
