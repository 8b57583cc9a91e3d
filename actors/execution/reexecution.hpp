// What this file is for: repeats calls of the log, so that data exists again that was lost with another node.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/logic/lineage/lineage.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/wire/task_messages.hpp"

namespace troupe::detail {

/// What `lineage::call::what` points to. There may be a hundred thousand of them, so they are kept as they were sent.
struct repeatable_call {
  std::vector<std::byte> card;  // a wire::task_card; its gaps are of no use here
  // Of each access of the card. The array is looked at only where its host's bytes are read, or lost ones are put in
  // their place: until it is forgotten.
  std::vector<std::shared_ptr<const wire::array_card>> shapes;
  std::vector<array_core*> arrays;
  mutable std::vector<saved_tile> brought;  // what it wrote, where the task ended only when that was here
};

/// It ran on another node. What may not be done twice, or has been done to this node's memory, is not repeated: what such
/// a task writes there comes home with its end.
inline bool is_repeatable(const task_record& t) {
  for (int i = 0; i < t.access_count; ++i)
    if (const access& x = t.accesses[i]; x.array && !logic::is_whole(x) && logic::writes(x)) return false;
  return t.kernel->repeat != purity::once;
}

struct remade_value {
  logic::value what;
  std::exception_ptr error;  // null: the host's bytes of the tile are of this version
};

/// The bytes of a value that was kept, rows packed; they stay until `remake` has returned.
using kept_copies = std::function<const std::byte*(const logic::value&)>;

/// Bodies that have run, and of these, those that threw.
struct remade_bodies {
  std::uint64_t run = 0, threw = 0;
};

/// Carries out the plan on this thread, step by step, and puts what was lost in its place: of each value of
/// `plan.remade`, in that order, how it went. A body that throws (after as many retries as its task has), a kernel that
/// has no body for CPUs or memory that is short fail what depends on them, and nothing else.
///
/// Until it returns nobody else may use the host's bytes of what the plan reads at home and of what was lost, which is
/// in memory, or has room there. They are overwritten at the end, each at once, and only if it exists again.
///
/// `bodies`, where it is given, is told how many have run.
std::vector<remade_value> remake(const logic::remake_plan&, const kept_copies&, house_link&,
                                 remade_bodies* bodies = nullptr);

}  // namespace troupe::detail
