// What this file is for: the number of a memory in which replicas live.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe::detail {

/// A memory in which replicas live: host memory of this node is 0.
using memory_space = std::uint16_t;
inline constexpr memory_space host_space = 0;
/// The space of a tile whose dirty copy is lost, while other devices are asked for a copy of it.
inline constexpr memory_space no_space = 0xffff;

}  // namespace troupe::detail
