// What this file is for: tiles whose only copy is lost: they are made again, or found elsewhere, or their readers fail.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// When a node dies, a thread repeats the calls that the log names on stand-ins (execution/reexecution), and tasks that
// need the results wait as for a transfer.
#include "actors/execution/reexecution.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/array_coherence.hpp"
#include "actors/memory/internal_tasks.hpp"
#include "actors/placement/internal_tasks.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/phase.hpp"

namespace troupe::detail {

void placement::lose(const executor& e, std::span<const std::pair<array_core*, std::uint32_t>> all,
                     const std::exception_ptr& why) {
  std::vector<std::pair<array_core*, std::uint32_t>> left;
  const bool node = log_ && e.facts().kind == device_kind::node;
  if (node) left = reexecute_lost(e, all);
  const std::span<const std::pair<array_core*, std::uint32_t>> lost = node ? left : all;
  for (const auto& [array, tile] : lost) {
    coherence_entry& entry = array->coherence->tiles[tile];
    if (entry.dirty_in != e.facts().space) continue;
    entry.cached.erase(e.facts().space);
    transfers_.rescue(*array, tile, entry, lost_copy_error(*array, tile, e.facts().shown_name(), why));
  }
}

// Treats tiles as lost that a task has written which retires now: they were lost when it had ended, but not yet in the
// order of the program.
void placement::lose_written(const task_record& t) {
  for (const chains::lost_tile& one : chains_.take_lost(t)) {
    const std::pair<array_core*, std::uint32_t> tile{one.array, one.tile};
    lose(executors_[t.executor], {&tile, 1}, one.why);
  }
}

// Starts the re-execution of the calls that wrote the lost tiles; returns the tiles that cannot be made again.
std::vector<std::pair<array_core*, std::uint32_t>> placement::reexecute_lost(
    const executor& e, std::span<const std::pair<array_core*, std::uint32_t>> lost) {
  lineage_log::repetition again = log_->reexecute_lost(e.facts().space, lost);
  std::vector<std::pair<array_core*, std::uint32_t>> left = std::move(again.lost);
  if (again.reexecuted.empty()) return left;
  std::vector<task_record*> tasks;
  for (const auto& [a, tile] : again.reexecuted) {
    task_record* const t = make_transfer(rt_, *a, tile, false);
    number(deps_.graph(), *t);
    t->executor = e.facts().id;
    log_->note_overwriting(*t, host_space);
    coherence_entry& entry = a->coherence->tiles[tile];
    entry.cached.erase(e.facts().space);
    entry.dirty_in = no_space;
    entry.moving = {t, t->sequence};
    tasks.push_back(t);
  }
  reexecutions_.start([this, again = std::move(again), tasks, name = e.facts().shown_name()] {
    std::vector<reexecuted_value> results;
    std::exception_ptr failed;
    reexecuted_bodies bodies;
    try {
      results = reexecute(
          again.plan, [&](const logic::value& v, std::span<const logic::box4> read) { return again.copy(v, read); },
          rt_, &bodies);
    } catch (...) {
      failed = std::current_exception();
    }
    reexecutions_.count(bodies);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      claim(*tasks[i]);
      const access& x = tasks[i]->accesses[0];
      if (const std::exception_ptr why = i < results.size() ? results[i].error : failed)
        tasks[i]->error = lost_copy_error(*x.array, x.tile, name, why, ", and it could not be made again");
      fulfil(*tasks[i], board_);
    }
    reexecutions_.report(tasks);
  });
  return left;
}

// ---- so that less is lost -------------------------------------------------------------------------------------------

// Collects the tiles that the log wants saved; leave_and_tell asks the nodes for them once the turn has been left.
void placement::save_some() {
  log_->each_to_save([&](array_core& a, std::uint32_t tile) { notifications_.add_save(a, tile); });
}

}  // namespace troupe::detail
