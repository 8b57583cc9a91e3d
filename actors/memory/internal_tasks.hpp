// What this file is for: the tasks that the runtime makes itself: transfers, spills, loans, the ends of arrays.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <memory>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

struct array_core;
struct home_box;
class peer_loan;
struct reduction;

/// Makes a task that combines a reduction's partials into its array; executors know by its kind what to do.
task_record* make_combine(runtime_state&, array_core&, reduction&);
/// Makes a task that makes the host's copy of a tile current, or (`discard`) has the device give up its own.
task_record* make_transfer(runtime_state&, array_core&, std::uint32_t tile, bool discard);
/// Makes a task that makes the host's copy current from a copy that is not dirty, if the device still has it; it fails
/// with `lost` if not.
task_record* make_rescue(runtime_state&, array_core&, std::uint32_t tile, std::exception_ptr lost);
/// Makes a task that writes a tile to disk and frees its memory (`spill`), or reads it back into fresh memory (`load`).
task_record* make_spill(runtime_state&, array_core&, std::uint32_t tile);
task_record* make_load(runtime_state&, array_core&, std::uint32_t tile);
/// Makes a task for the device that has a tile: it opens the loan, or calls it back.
task_record* make_lend(runtime_state&, std::shared_ptr<peer_loan>);
/// Makes a task for the executor that has a tile: it fills the box, if it still has the tile.
task_record* make_fetch(runtime_state&, array_core&, std::shared_ptr<home_box>);
/// Makes a task that frees a device's copies of an array.
task_record* make_forget(runtime_state&, array_core&);
/// Makes a task that reads all of the array and does nothing.
task_record* make_look(runtime_state&, array_core&);
/// Makes a task that comes after all that use the array, and ends when the array is freed.
task_record* make_farewell(runtime_state&, array_core&);
/// Makes a task that touches nothing and only waits; see logic/data/read_groups.hpp.
task_record* make_gate(runtime_state&);

}  // namespace troupe::detail
