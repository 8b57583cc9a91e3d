// What this file is for: the kernels of this process that other nodes may name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <troupe/offer.hpp>

namespace troupe::detail {

/// Null: none of that key has been offered. Any thread; what it points to stays.
const offered_kernel* find_offer(std::uint64_t key);
/// The keys of all, in order.
std::vector<std::uint64_t> offered_keys();

}  // namespace troupe::detail
