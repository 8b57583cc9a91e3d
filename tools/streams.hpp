// What this file is for: `troupe streams`: the streams of a program that runs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>

namespace troupe::tools {

/// Prints what a program tells at its socket, once, or again after each pause until it has ended. Returns the exit code.
int show_streams(const std::string& path, std::chrono::milliseconds every);

}  // namespace troupe::tools
