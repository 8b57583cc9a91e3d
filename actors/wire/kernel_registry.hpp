// What this file is for: the kernels of this process that other nodes may name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <troupe/offer.hpp>

namespace troupe::detail {

/// Null: none of that key has been offered. Any thread; what it points to stays.
const offered_kernel* find_offer(std::uint64_t key);
/// The keys of all, in order.
std::vector<std::uint64_t> offered_keys();

/// Returns whether a value of so many bytes may be told for the parameter; of a list of arrays, for its length.
bool is_size_of(const parameter_facts&, std::size_t bytes);
/// Returns how many arrays a list has, of the value that tells it.
list_length length_of(std::span<const std::byte> value);

}  // namespace troupe::detail
