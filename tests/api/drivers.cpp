// What this file is for: what drivers keep until the process ends is no leak of ours.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause

// NOLINTNEXTLINE(bugprone-reserved-identifier): LeakSanitizer's name for it
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libpocl\nleak:libLLVM\nleak:libclang"; }
