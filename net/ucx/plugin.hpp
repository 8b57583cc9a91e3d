// What this file is for: what the library and libtroupe_ucx.so know of each other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "net/bulk_fabric.hpp"

namespace troupe::net::ucx {

/// Classes cross the border: both sides must be of one release, and of one build of the seam.
inline constexpr const char* plugin_version = "troupe 0.1.0, seam 1";
inline constexpr const char* plugin_file = "libtroupe_ucx.so";
inline constexpr const char* plugin_entry = "troupe_open_fabric";

/// Loaded before the plugin, and the function in it is called; see first.cpp.
inline constexpr const char* first_file = "libtroupe_ucx_first.so";
inline constexpr const char* first_entry = "troupe_before_ucx";

/// A fabric that the caller owns; null, and why, where the versions differ or UCX finds nothing to work with. `first`:
/// UCX was not in this process before. Does not throw.
using plugin_function = bulk_fabric*(const char* version, bool first, std::string* why);

}  // namespace troupe::net::ucx
