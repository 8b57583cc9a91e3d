// What this file is for: the commands `troupe keygen`, `troupe ca` and `troupe issue`.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe::tools {

/// Make files and say on stdout which; throw what goes wrong.
void make_secret_file(const std::string& file);
void make_authority(const std::string& folder, const std::string& cluster, int days);
void issue(const std::string& folder, const std::string& node, int days);

}  // namespace troupe::tools
