// What this file is for: the memory of a box as the pieces that a transfer is made of.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <troupe/view.hpp>

#include "net/transport.hpp"

namespace troupe::detail {

/// In row-major order, as few as the strides allow.
net::pieces rows_of(const raw_view&, std::size_t element);

}  // namespace troupe::detail
