// What this file is for: tasks that are submitted: held back at the bound, posted for a turn, or ordered in a side turn
// by the thread that submits them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/placement.hpp"

#include <atomic>

#include "actors/protocol/clock.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/successors.hpp"

namespace troupe::detail {

void placement::submit(task_record* t, bool inside) {
  if (!inside) {
    const bool aside = turns_.aside().are_wanted();
    if (aside ? in_flight_.may_be_at_bound(side_turns::of_thread()) : in_flight_.may_be_at_bound()) wait_at_bound();
    if (aside && order_aside(*t)) return;
  }
  have_ordered(post({&t, 1}, inside), inside);
}

void placement::submit_together(std::span<task_record* const> all, bool inside) {
  if (all.empty()) return;
  if (!inside && in_flight_.may_be_at_bound()) wait_at_bound();
  const std::size_t waiting = post(all, inside);
  have_ordered(waiting == all.size() ? 1 : waiting, inside);
}

// Sees to it that what has been posted is ordered soon; `waiting`: so much mail there is now.
inline void placement::have_ordered(std::size_t waiting, bool inside) {
  int asleep = 0;
  for (const executor* e : executors_.near()) asleep += e->sleepers();
  if (asleep != 0) {
    // The submitting thread takes the turn if no thread works, or if the working threads do not seem to come for the
    // mail. That is looked at now and then only: it costs a cache line from the thread that takes the turns.
    if (active() == 0 || ((waiting == 1 || waiting % in_flight::look_every == 0) && has_stale_mail(clock_.ticks())))
      inside ? take_turn(nullptr) : take_turn_waiting();
    else if (waiting == 1)
      for (executor* e : executors_.near()) e->keep_watch();
  } else if (log_ && (waiting == 1 || waiting % in_flight::look_every == 0)) {
    // All threads here are in bodies of unknown length, and the task may be for another node, or another one's.
    if (!has_stale_mail(clock_.ticks()))
      alarm_.ring_soon();
    else
      inside ? take_turn(nullptr) : take_turn_waiting();
  }
  if (closed()) take_turn(nullptr);
}

// Holds the calling thread back before its task is posted: the body may wait for something that this thread does once
// it has spawned it. All mail is handled, and the thread sleeps until a quarter of the tasks has drained. A thread with
// a view that tasks wait for is not held back: they would never end.
void placement::wait_at_bound() {
  if (!in_flight_.is_at_bound()) return;
  take_turn(nullptr);
  in_flight_.wait_until_drained([this] { collect_ends(); });
}

bool placement::wait_for_room(std::chrono::steady_clock::time_point deadline) {
  if (closed() || !in_flight_.is_at_bound()) return true;
  take_turn(nullptr);
  return in_flight_.wait_for_room(deadline, [this] { collect_ends(); });
}

// ---- aside ----------------------------------------------------------------------------------------------------------

// Posts submissions for the turn; what the same threads submit next to the same arrays is posted, too.
std::size_t placement::post(std::span<task_record* const> tasks, bool inside) {
  return mail_.submit(tasks, in_flight_.submissions(), inside,
                      [this](const task_record& t) { turns_.aside().note_posted(t); });
}

// Orders a task in a side turn of the calling thread, and hands it to the cores if it is ready; false: it has to be
// posted. Nothing is decided here that a turn would have to know of: the task is early.
bool placement::order_aside(task_record& t) {
  if (t.kind != task_kind::call || !is_plain(t)) return false;
  const std::size_t side = side_turns::of_thread();
  side_turns& turns = turns_.aside();
  bool told = false, taken = false, released = false, posted = false;
  if (turns.try_take(side, turns.is_for_turn(t), told)) {
    taken = aside_.may_take(turns, side, t) && assignment_.foresee_aside(t);
    if (taken) {
      in_flight_.note_submitted_aside(side);
      task_record* unordered = &t;
      try {
        aside_.order(side, t);
        t.id = t.sequence;
        unordered = nullptr;  // from here on it may have ended
        // A task comes with one pending count, its submission, taken off here.
        if (t.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) (release_aside(t, side) ? released : posted) = true;
      } catch (...) {
        (void)turns.leave(side);  // the turn that is taken now tells
        return end_failed_aside(unordered);
      }
    } else {
      aside_.note_refused(side);
    }
    told = turns.leave(side) || told;
  }
  if (released) executors_[0].after_turn();
  if (told) turnless_.turn_left();
  if (posted) take_turn(nullptr);
  return taken;
}

// Hands a task that has just been ordered aside to the cores. With the side turn: a turn in which the runtime begins to
// end comes before that or finds the task in their queue. False: it was cancelled just now, and posted for the turn.
bool placement::release_aside(task_record& t, std::size_t side) {
  task_record* const one = &t;
  if ((t.phase.load(std::memory_order_acquire) & phase_mask) != phase_waiting) {
    mail_.post({&one, 1}, mail::ready);
    return false;
  }
  executors_[0].run_own(t, side, active() == 0 ? executor::attention::nobody : executor::attention::somebody);
  return true;
}

// Ends the runtime as a turn does in which something was thrown. `t`: a task that is half ordered, or null.
bool placement::end_failed_aside(task_record* t) {
  turns_.take();
  if (t) give_up(*t);
  end_failed_turn(true);
  return true;
}

}  // namespace troupe::detail
