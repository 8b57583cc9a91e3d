// The loops on troupe.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <troupe/runtime.hpp>

#include "problem.hpp"

namespace bench {

/// In tiles of so many rows and columns.
cost life_on(troupe::runtime&, life_problem&, std::size_t rows, std::size_t columns);
/// In chunks of so many nodes, whose ranks lie in tiles of so many.
cost page_rank_on(troupe::runtime&, rank_problem&, std::size_t chunk, std::size_t tile);

}  // namespace bench
