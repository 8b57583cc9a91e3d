// What this file is for: the command `troupe nodes`.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

#include <troupe/options.hpp>

namespace troupe::tools {

/// Joins, prints the others and their links, leaves. Gives 1 if nobody was found within `look`. On stderr, a line for
/// each address that led to nobody: why.
int show_nodes(options, std::chrono::milliseconds look, bool json);

}  // namespace troupe::tools
