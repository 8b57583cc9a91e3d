// What this file is for: what the library and libtroupe_opencl.so know of each other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "devices/accelerator.hpp"

namespace troupe::devices::opencl {

/// Classes cross the border: both sides must be of one release, and of one build of the seam.
inline constexpr const char* plugin_version = "troupe 0.1.0, seam 5";
inline constexpr const char* plugin_file = "libtroupe_opencl.so";
inline constexpr const char* plugin_entry = "troupe_open_accelerators";

/// The entry: returns a source that the caller owns; null where the versions differ. Does not throw.
using plugin_function = accelerator_source*(const char* version);

}  // namespace troupe::devices::opencl
