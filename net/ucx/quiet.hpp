// What this file is for: keeping UCX from what belongs to the program: its signals, its output, its memory's calls.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe::net::ucx {

/// At once after UCX has been loaded, and before anything of it is used.
void keep_to_itself();
/// Returns what UCX has complained of last on this thread; empty: nothing since this was called.
std::string last_complaint();

}  // namespace troupe::net::ucx
