// What this file is for: the making and the end of the state behind an array handle.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not in the header: the states that an array has only when it needs them are declared there and no more.
#include "actors/logic/data/array_core.hpp"

#include "actors/logic/data/array_coherence.hpp"
#include "actors/logic/data/budgeted_tiles.hpp"

namespace troupe::detail {

array_core::array_core() = default;
array_core::~array_core() = default;

}  // namespace troupe::detail
