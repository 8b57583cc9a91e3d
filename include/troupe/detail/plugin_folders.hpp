// What this file is for: where the library's plugins may lie.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <filesystem>
#include <vector>

namespace troupe::detail {

/// Beside the program or library that this is part of, and ../lib from there; whatever name it was started by. Empty where
/// the system does not say.
std::vector<std::filesystem::path> plugin_folders();

}  // namespace troupe::detail
