// What this file is for: the way to whatever OpenCL 1.2 reaches, through a plugin.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "devices/accelerator.hpp"

namespace troupe::devices {

/// Opens libtroupe_opencl.so: where `plugin_folders(first)` says, in `folders`, or where the system looks. Never throws
/// for want of the plugin, of OpenCL or of a device: the source then counts 0
/// and remarks why.
std::unique_ptr<accelerator_source> make_opencl_source(std::span<const std::filesystem::path> folders = {},
                                                       std::span<const std::string> first = {});

}  // namespace troupe::devices
