// What this file is for: which troupe this is.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

/// The version of the library that the program runs with, "0.1.0". With the shared library it may differ from the
/// version that the program was compiled with. Any thread.
const char* version() noexcept;

}  // namespace troupe
