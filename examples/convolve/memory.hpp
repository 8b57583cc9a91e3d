// What this file is for: how much memory this process may still take, asked before a picture is unpacked.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace convolution {

/// Bytes that can be taken without swapping or being killed: the smallest of what the machine has available and what
/// every control group (v1 or v2) above this process leaves. Falls back to the largest number where nothing is known.
std::uint64_t memory_available_bytes();

}  // namespace convolution
