// What this file is for: what drivers keep until the process ends is no leak of ours.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "places.hpp"

// PoCL and its compiler; as in tests/devices/conformance.cpp.
extern "C" const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() { return "leak:libpocl\nleak:libLLVM\nleak:libclang"; }
