// What this file is for: the names of the network's threads, for debuggers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe::net {

/// Names the calling thread, at most 15 characters.
void name_this_thread(const std::string&) noexcept;

}  // namespace troupe::net
