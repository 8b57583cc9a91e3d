// What this file is for: names, sizes, rates and times as the tools print them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace troupe::tools {

/// Others choose their names: nothing of them is a command to a terminal.
std::string shown(std::string name);
/// As a JSON string.
std::string quoted(const std::string&);
std::string size_text(std::uint64_t bytes);            ///< "64.0 MiB"
std::string rate_text(double bytes_per_second);        ///< "1.2 GiB/s"; "-" for 0
std::string time_text(std::chrono::nanoseconds);       ///< "82 us"; "-" for 0
std::string up_text(std::chrono::milliseconds since);  ///< "2d 3h", "4m 7s"

}  // namespace troupe::tools
