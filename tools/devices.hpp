// What this file is for: the command `troupe devices`.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe::tools {

/// Prints the cores and accelerators of this machine, as a table or as JSON; gives the exit code. `measure`: links that
/// are not known from before.
int show_devices(bool json, bool measure);

}  // namespace troupe::tools
