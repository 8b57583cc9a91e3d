// What this file is for: the version, as the build has it (`project` in CMakeLists.txt).
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/version.hpp>

namespace troupe {

const char* version() noexcept { return TROUPE_VERSION; }

}  // namespace troupe
