// What this file is for: checks of what an owner says of a call: its kernel's signature, its boxes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "actors/logic/data/array_core.hpp"
#include "actors/wire/kernel_registry.hpp"
#include "actors/wire/task_messages.hpp"

namespace troupe::detail {

/// Throws error(protocol_error): the owner has said what makes no sense here.
[[noreturn]] void refuse_peer(const std::string& what);

/// Returns an array as its owner describes it; throws as `refuse_peer` if it is too large.
array_spec spec_of(const wire::array_descriptor&);

/// Checks the boxes of an access; throws as `refuse_peer`.
void check_access(const array_core&, const wire::access_descriptor&);

/// Returns the array that the owner has named by a number; null: it has not.
using named_array = std::function<const array_core*(std::uint64_t)>;

/// The arguments of a call that fit its kernel: values as `offered_kernel::fill` takes them, where they lie in the
/// descriptor, and how many arrays each list of arrays has.
struct checked_call {
  std::vector<std::span<const std::byte>> values;
  std::vector<std::uint32_t> lists;
};

/// Checks that a task whose partial may be added to those of others makes nothing else. Throws as `refuse_peer`.
void check_sums(const wire::task_descriptor&);

/// Checks the arguments of a call against the kernel's signature. Throws as `refuse_peer`.
checked_call check_call(const wire::task_descriptor&, const offered_kernel&, const named_array&);

}  // namespace troupe::detail
