// What this file is for: data before and after a task: what it waits for, what is accounted for, when arrays are freed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include <troupe/error.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/memory/internal_tasks.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/placement/internal_tasks.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/phase.hpp"

namespace troupe::detail {

// ---- before a task is handed over -----------------------------------------------------------------------------------

// Takes the tasks that must wait for data out of the outgoing ones. True if a task has failed meanwhile, or executors
// have room for others. The latter not under a budget: the others would compete for the room.
bool placement::set_aside_for_data() {
  bool any = false;
  do {
    for (int i = assignment_.next_outgoing(0); i != logic::executor_set::end; i = assignment_.next_outgoing(i + 1))
      std::erase_if(assignment_.outgoing(i), [&](task_record* t) {
        if ((t->marks & mark_chained) || !must_wait_for_data(*t)) return false;  // behind: send_behind has looked at it
        if (!host_memory_) assignment_.set_aside(*t);
        return any = true;
      });
  } while (host_memory_ && give_room());
  return work_.any_to_retire() || (any && !host_memory_ && assignment_.kept() != 0);
}

// Gives tasks that wait for room in host memory what is free by now; true if some task may go on.
bool placement::give_room() {
  const bool any = host_memory_->give_room();
  chains_.forget_edges();  // loads are not tasks of a device
  return any;
}

void placement::fetch(array_core& a, std::uint32_t tile, coherence_entry& entry) { transfers_.fetch(a, tile, entry); }

void placement::room_unwanted(task_record& t) { retire_ended(t); }

// Decides whether a task has its data where it is to run. If the only current copy of a tile that it touches is
// elsewhere, it waits for a transfer like for any other task.
placement::data_verdict placement::judge_data(task_record& t) {
  const memory_space where = t.kind == task_kind::host_access ? host_space : assignment_.space_of(t);
  if (std::exception_ptr lost = logic::lost_input(t)) return {.waits = false, .lost = std::move(lost)};
  const bool node = where != host_space && is_node(t);
  bool waits = executors_.has_devices() && transfers_.must_wait(t, where, node);
  if (!waits && host_memory_) waits = host_memory_->must_wait(t);
  chains_.forget_edges();  // the tasks linked here do not count as ahead
  if (waits) return {.waits = true};
  // The end of an early task is not told: its tiles are at home before and afterwards, of the version that they had.
  if (log_ && !(t.marks & mark_early)) log_->note_overwriting(t, where);
  if (executors_.has_devices()) transfers_.leaves(t, where, node);
  gangs_.given(t);
  return {};
}

// Times how long a task waits for bytes, over all looks at it. For what reads its extra part; see streams.
void placement::note_data_wait(task_extra& x, bool waits) const {
  if (waits == (x.data_wait_began != 0)) return;
  const std::uint64_t now = clock_.ticks();
  if (!waits) x.data_wait_ns += static_cast<float>(static_cast<double>(now - x.data_wait_began) * clock_.ns_per_tick());
  x.data_wait_began = waits ? now : 0;
}

// Applies the decision; true if the task must wait, or has failed because its data is lost.
bool placement::must_wait_for_data(task_record& t) {
  const data_verdict v = judge_data(t);
  if (t.extra) note_data_wait(*t.extra, v.waits);
  if (v.lost) fail_unstarted(t, v.lost);
  return v.waits || v.lost;
}

// ---- what has ended -------------------------------------------------------------------------------------------------

// Early tasks, which are not sent, have changed tiles in host memory that were nowhere else; when one retires, a task
// that came after it may have run elsewhere already.
void placement::account_for_data(task_record& t) {
  if (t.marks & mark_has_room) host_memory_->give_back(t);
  if (t.kind == task_kind::spill || t.kind == task_kind::load) {
    host_memory_->account_for_move(t);
  } else if (t.kind == task_kind::transfer || t.kind == task_kind::fetch) {
    account_for_transfer(t);
  } else if (t.kind == task_kind::host_access || (t.marks & mark_sent)) {
    const memory_space where = t.kind == task_kind::host_access ? host_space : assignment_.space_of(t);
    const bool node = log_ && is_node(t);
    if (node) log_->note_read(t);
    logic::note_done(t, where);
    if (!log_) return;
    log_->note_at_home(t, where);
    log_->note_ran(t, where, node);
    if (node) save_some();
  }
}

void placement::account_for_transfer(task_record& t) {
  const access& x = t.accesses[0];
  transfers::outcome how = transfers_.ended(t);
  if (how == transfers::outcome::lost_with_node) {
    const std::pair<array_core*, std::uint32_t> lost{x.array, x.tile};
    lose(executors_[t.executor], {&lost, 1}, t.error);
    const bool comes = x.array->coherence->tiles[x.tile].dirty_in == no_space;  // it is being made again
    how = comes ? transfers::outcome::asked_elsewhere : transfers::outcome::at_home;
  }
  if (how == transfers::outcome::at_home && host_memory_) host_memory_->went_home(x);
}

// ---- the end of an array -------------------------------------------------------------------------------------------

void placement::free_if_unused(array_core& a) {
  if (!a.dropped || a.users != 0 || waits_for_early(a)) return;
  if (a.coherence && !a.coherence->spaces.empty()) {
    if (a.is_borrowed() && transfers_.bring_home(a)) return;
    if (log_) log_->forget(a);
    transfers_.forget_copies(a);
    return;
  }
  if (log_) log_->forget(a);
  free(a);
}

// True if early tasks use the array, which end without a turn: then a task that comes after them frees it. Where there
// is no memory for that, it is tried again when the alarm rings.
bool placement::waits_for_early(array_core& a) {
  if (!a.used_early || in_flight_.none() || !deps_.is_used_early(a)) return false;
  task_record* t = nullptr;
  bool waits = true;
  try {
    t = make_farewell(rt_, a);
    number(deps_.graph(), *t);
    waits = deps_.order_after_early(a, *t);
    if (waits) t = nullptr;
  } catch (const std::bad_alloc&) {
    if (std::ranges::find(unfreed_, &a) == unfreed_.end()) unfreed_.push_back(&a);
    alarm_.ring_soon();
  }
  chains_.forget_edges();  // no device has it
  if (t) {
    --a.users;
    recycle(t);
  }
  return waits;
}

// Tries again to free what could not be freed for want of memory.
void placement::free_unfreed() {
  for (array_core* a : std::exchange(unfreed_, {})) free_if_unused(*a);
}

void placement::free(array_core& a) {
  if (host_memory_) host_memory_->forget(a);
  std::erase(unfreed_, &a);
  deps_.forget(a);
  task_record* const farewell = a.farewell;
  destroy(a);
  if (farewell) end_farewell(*farewell);
}

void placement::bid_farewell(task_record& t) {
  if (!farewells_.add(t) && claim(t)) fulfil(t, board_);
  mail_.post(mail(&t, mail::submitted));
  alarm_.ring_soon();  // a task that uses it may have ended, and its end been kept
}

void placement::end_farewell(task_record& t) {
  farewells_.remove(t);
  if (claim(t)) fulfil(t, board_);
  if (t.references.fetch_sub(1, std::memory_order_acq_rel) == 1) recycle(&t);
}

}  // namespace troupe::detail
