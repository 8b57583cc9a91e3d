// What this file is for: the operators of reductions that all nodes know, by their numbers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include <troupe/access.hpp>

namespace troupe::detail {

/// Returns the operator with that number, as operator_code has it; null: there is none.
combine_fn combiner_of(std::uint16_t code);
/// Returns the size in bytes of the elements that the operator with that number is for.
constexpr std::size_t element_of(std::uint16_t code) { return code & 0x0fu; }

}  // namespace troupe::detail
