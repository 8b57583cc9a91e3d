// What this file is for: what this build is watched by, for marks that cannot hold under it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace test {

/// As given to -fsanitize, "address,undefined"; empty: nothing.
#if defined(TROUPE_SANITIZED)
inline constexpr std::string_view sanitizers = TROUPE_SANITIZED;
#else
inline constexpr std::string_view sanitizers{};
#endif

/// Everything is slow, and what is freed is kept for a while: times and memory are recorded, not judged.
inline constexpr bool sanitized = !sanitizers.empty();
/// Looks whether an object can be read by writing it into a pipe, for which it needs two descriptors; without them it
/// takes each object that it has not seen before for a broken one.
inline constexpr bool needs_descriptors = sanitizers.find("undefined") != sanitizers.npos;
/// Shadow memory is mapped over most of the address space.
inline constexpr bool needs_address_space =
    sanitizers.find("address") != sanitizers.npos || sanitizers.find("thread") != sanitizers.npos;

}  // namespace test
