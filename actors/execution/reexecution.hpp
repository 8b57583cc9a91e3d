// What this file is for: repeats calls of the log, so that data that was lost with another node exists again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/box4.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/logic/lineage/lineage.hpp"
#include "actors/memory/host_tiles.hpp"

namespace troupe::detail {

namespace wire {
struct array_descriptor;
}

/// A call that may be repeated; `lineage::call::what` points to it. There may be a hundred thousand of them, so they
/// are kept as they were sent.
struct repeatable_call {
  std::vector<std::byte> descriptor;  // a wire::task_descriptor; its gaps are not used here
  // Shape and array of each access of the descriptor. The array is used only to read its host's bytes or to put lost
  // ones in their place, until the log forgets it.
  std::vector<std::shared_ptr<const wire::array_descriptor>> shapes;
  std::vector<array_core*> arrays;
  mutable std::vector<saved_tile> brought;  // its writes, if the task ended only once they were here
};

/// True if a task that ran on another node may be repeated: its kernel may run twice, and the task wrote no parts of
/// tiles. Parts are written to this node's memory, and come back as the task ends.
inline bool is_repeatable(const task_record& t) {
  for (int i = 0; i < t.access_count; ++i)
    if (const access& x = t.accesses[i]; x.array && !logic::is_whole(x) && logic::writes(x)) return false;
  return t.kernel->repeat != purity::once;
}

/// A lost value, and whether it exists again.
struct reexecuted_value {
  logic::value what;
  std::exception_ptr error;  // null: the host's bytes of the tile are of this version
};

/// Returns the bytes of a value that was kept, rows packed; they stay until `reexecute` has returned. `read`: the boxes
/// that are looked at; none: all of the tile. Null: some of that was not kept.
using kept_copies = std::function<const std::byte*(const logic::value&, std::span<const logic::box4> read)>;

/// Counts the bodies that have run, and of these, those that threw.
struct reexecuted_bodies {
  std::uint64_t run = 0, threw = 0;
};

/// Carries out the plan on this thread, step by step, and puts lost values in their place. Returns the outcome of each
/// value of `plan.reexecuted`, in that order. A body that throws (after as many retries as its task has), a kernel
/// without a body for CPUs, or a lack of memory fails the values that depend on it, and nothing else.
///
/// Until it returns, no other thread may use the host's bytes of values that the plan reads at home, or of lost tiles,
/// which are in memory or have room there. Lost tiles are overwritten at the end, each as a whole, and only if its
/// value exists again.
///
/// `bodies`, if given, is set to the number of bodies that have run.
std::vector<reexecuted_value> reexecute(const logic::reexecution_plan&, const kept_copies&, runtime_state&,
                                        reexecuted_bodies* bodies = nullptr);

}  // namespace troupe::detail
