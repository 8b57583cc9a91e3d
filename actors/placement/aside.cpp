// What this file is for: tasks that the threads which submit them order themselves, in side turns.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>

#include "actors/placement/placement.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/successors.hpp"

namespace troupe::detail {

// ---- without the turn -----------------------------------------------------------------------------------------------

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
  if (turns.try_take(side, told)) {
    taken = aside_.may_take(turns, side, t) && assignment_.foresee_aside(t);
    if (taken) {
      in_flight_.note_submitted_aside(side);
      try {
        aside_.order(side, t);
        t.id = t.sequence;
        // A task comes with one pending count, its submission, taken off here.
        if (t.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) (release_aside(t) ? released : posted) = true;
      } catch (...) {
        told = turns.leave(side) || told;
        return end_failed_aside(t);
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
bool placement::release_aside(task_record& t) {
  task_record* const one = &t;
  if ((t.phase.load(std::memory_order_acquire) & phase_mask) != phase_waiting) {
    mail_.post({&one, 1}, mail::ready);
    return false;
  }
  executors_[0].run_tasks({&one, 1}, active() == 0 ? executor::attention::nobody : executor::attention::somebody);
  return true;
}

// Ends the runtime as a turn does in which something was thrown. The task may be half ordered.
bool placement::end_failed_aside(task_record& t) {
  turns_.take();
  give_up(t);
  end_failed_turn(true);
  return true;
}

// ---- with the turn --------------------------------------------------------------------------------------------------

// True if nothing has to be decided about calls on whole tiles: there is one executor, and no trace.
bool placement::may_order_aside() const { return releases_early() && executors_.size() == 1 && !trace_.is_on(); }

// Decides, after some mail was handled, whether threads that submit are to order tasks themselves.
void placement::look_at_sides(std::size_t fetched, std::size_t lanes) {
  if (turns_.aside().are_wanted()) {
    if (side_policy_.is_to_stop(aside_.ordered())) turns_.aside().stop();
    return;
  }
  if (!side_policy_.is_to_begin(fetched, lanes) || !may_order_aside() || ending_.has_begun()) return;
  if (!aside_.exist()) {
    aside_.make();
    in_flight_.count_sides();
  }
  assignment_.note_foreseen(aside_.even_out());
  begin_generation();
}

void placement::begin_generation() {
  turns_.aside().renew();
  mail_.await_posting();
}

// Begins another generation if arrays are missed, and lets it count once there is no mail.
void placement::settle_generation() {
  if (!mail_.work().empty()) return;
  if (turns_.aside().is_settled()) {
    if (mail_.count() != 0 || !aside_.take_refused()) return;
    begin_generation();
  }
  if (mail_.count() == 0) turns_.aside().note_empty();
}

}  // namespace troupe::detail
