// What this file is for: which troupe this is.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

/// The version of the library that the program runs with, "0.1.0"; with the shared library not necessarily the one that it
/// was compiled with. Any thread.
const char* version() noexcept;

}  // namespace troupe
