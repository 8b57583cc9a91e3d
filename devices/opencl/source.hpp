// What this file is for: all OpenCL devices that can be used here; the inside of libtroupe_opencl.so.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "devices/accelerator.hpp"

namespace troupe::devices::opencl {

/// Devices of all platforms, in the order in which OpenCL's loader tells them.
std::unique_ptr<accelerator_source> make_source();

}  // namespace troupe::devices::opencl
