// What this file is for: lz4, for one chunk at a time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

namespace troupe::net::tcp {

/// Bytes written to `to`; 0 if they do not fit, which is how to ask for a gain.
std::size_t pack(std::span<const std::byte> raw, std::span<std::byte> to);
/// False unless exactly all of `to` has been written. Never writes beyond it, whatever `packed` holds.
bool unpack(std::span<const std::byte> packed, std::span<std::byte> to);

}  // namespace troupe::net::tcp
