// What this file is for: the memory of a box as the pieces that a transfer is made of.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include <troupe/view.hpp>

#include "actors/logic/data/array_core.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

/// In row-major order, as few as the strides allow.
net::pieces rows_of(const raw_view&, std::size_t element);
/// Copies packed rows into these pieces.
void copy_into(const net::pieces&, const std::byte* packed);
/// Returns the rows of a box of a tile in host memory; `overwritten`: see host_tile.
net::pieces rows_of(runtime_state&, array_core&, std::uint32_t tile, const logic::box4&, bool overwritten);

}  // namespace troupe::detail
