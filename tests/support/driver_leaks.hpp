// What this file is for: what drivers keep until the process ends is no leak of ours: included once by a test program.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// PoCL and its compiler; UCX, a hundred bytes now and then. The sanitizer's library has to see it: it is not hidden.
extern "C" __attribute__((visibility("default")))  // NOLINTNEXTLINE(bugprone-reserved-identifier)
const char*
__lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libuct";
}
