// How many heap allocations this process has made so far.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace bench {

/// Calls of malloc, calloc, realloc and the aligned forms by every thread and every library since the start. Operator
/// new is among them, because libstdc++ builds it on malloc. Pools that map pages themselves (tbbmalloc) are not.
[[nodiscard]] std::uint64_t allocations();

/// False under a sanitizer, which needs malloc for itself: `allocations()` is then always 0.
[[nodiscard]] bool allocations_counted();

}  // namespace bench
