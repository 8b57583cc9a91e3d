// What this file is for: what an executor tells placement at one time is accounted for in the order that keeps it true.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/detail/engine.hpp>

#include "actors/placement/placement.hpp"
#include "actors/protocol/report_batch.hpp"

namespace troupe::detail {

// The order of the steps:
// - Done tasks come first: what they wrote is among what is lost, so their writes must be in the directory by then.
// - Lost tiles, overwritten inputs, and refusals come before the returned tasks: placement may place a task again as
//   soon as it is returned, and must know by then what the task cannot have there, and where it must not go.
// - A failure comes last: it withdraws the executor, and what was returned before is not one of its setbacks.
void placement::report(executor& self, report_batch&& b) {
  if (!b.done.empty()) report_done(b.done, &self);
  if (!b.lost.empty()) report_lost(self, b.lost, b.lost_why);
  if (!b.overwritten_inputs.empty()) report_overwritten_inputs(self, b.overwritten_inputs);
  note_refusals(b.refusals);
  if (!b.returned.empty()) report_returned(b.returned);
  make_extras(b.need_extra);
  if (b.failed) report_failure(self, b.failed->lost, b.failed->why, b.failed->for_good);
}

void placement::note_refusals(std::span<const std::pair<task_record*, std::exception_ptr>> all) {
  if (all.empty()) return;
  with_turn([&] {
    for (const auto& [t, why] : all) {
      extra_of(*t).refused = true;
      if (why) t->extra->refusal = why;
    }
  });
}

void placement::make_extras(std::span<task_record* const> tasks) {
  if (std::ranges::none_of(tasks, [](const task_record* t) { return t->extra == nullptr; })) return;
  with_turn([&] {
    for (task_record* t : tasks) extra_of(*t);
  });
}

void placement::report_failure(const executor& e, std::span<const std::pair<array_core*, std::uint32_t>> lost,
                               std::exception_ptr why, bool for_good) {
  take_settled_turn();                      // what the executor has done before is accounted for
  assignment_.disconnect(e.facts().space);  // a device that is opened again is not connected
  chains_.note_lost(e.facts().id, lost, why);
  lose(e, lost, why);
  if (for_good) {
    assignment_.withdraw(e.facts().id);
    admission_.remove_node(e.facts().id);
    if (e.facts().kind == device_kind::node) {
      absent_.note_gone(e.facts().shown_name());
      chains_.note_far(e.facts().id, false);
    }
    std::vector<task_record*> kept;  // tasks kept while this executor was a candidate
    assignment_.drop_kept([&](task_record& t) { kept.push_back(&t); });
    for (task_record* t : kept) assign(*t);
  }
  serve(nullptr);  // refuses tasks that no other executor can run; leaves the turn
  take_turn(nullptr);
}

void placement::report_lost(const executor& e, std::span<const std::pair<array_core*, std::uint32_t>> lost,
                            std::exception_ptr why) {
  take_settled_turn();  // what was done before is accounted for
  chains_.note_lost(e.facts().id, lost, why);
  lose(e, lost, why);
  leave_turn();
  take_turn(nullptr);
}

void placement::report_saved(const executor& e, std::uint64_t times, std::span<saved_tile> all) {
  with_turn([&] {
    log_->take_home(e.facts(), times, all);
    save_some();
  });
}

void placement::report_not_saved(std::span<const std::pair<array_core*, std::uint32_t>> all) {
  with_turn([&] {
    for (const lineage_log::tile_id& t : all) log_->not_saved(t);
  });
}

void placement::report_overwritten_inputs(const executor& e, std::span<const overwritten_input> all) {
  with_turn([&] {
    for (const overwritten_input& o : all) fates_.add_lost_input(e, o);
  });
}

}  // namespace troupe::detail
