// What this file is for: the way to UCX, the engine of HPC fabrics, through a plugin.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <string>

#include "net/bulk_fabric.hpp"

namespace troupe::net {

/// Opens libtroupe_ucx.so: where `plugin_folders(folders)` says, or where the system looks. Null, and why, for want of
/// the plugin, of UCX or of a transport that it could use. Never throws.
std::unique_ptr<bulk_fabric> open_ucx(std::string& why, std::span<const std::string> folders = {});

}  // namespace troupe::net
