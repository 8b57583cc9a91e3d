// What this file is for: a count by which a thread sees that the executors it knows are the same still.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe::detail {

/// Counts how often executors of this process have been made or renamed. While it is unchanged, the scopes of a runtime
/// name the same executors.
inline std::atomic<std::uint64_t> executor_changes{1};
inline void executors_changed() { executor_changes.fetch_add(1, std::memory_order_release); }

}  // namespace troupe::detail
