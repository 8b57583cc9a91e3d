// What this file is for: a spill file in a directory of the file system.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "devices/spill_file.hpp"

namespace troupe::devices {

/// A file without a name, so that nothing is left behind however the process ends. Throws error(io_failed) if none can
/// be made there.
std::unique_ptr<spill_file> make_spill_file(const std::string& directory);

}  // namespace troupe::devices
