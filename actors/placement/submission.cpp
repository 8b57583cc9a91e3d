// What this file is for: tasks that are submitted: held back at the bound, posted for a turn, or ordered in a side turn
// by the thread that submits them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/placement.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "actors/protocol/clock.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/successors.hpp"

namespace troupe::detail {

namespace {
// Longest wait for a side turn: what it takes to handle the mail that some threads post meanwhile. How often a thread
// looks, and how often before it gives its core to others between two looks.
constexpr double side_wait_ns = 100'000;
constexpr int looks_max = 2'000, pauses = 200;
}  // namespace

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
    // Where all threads here are in long bodies, the task may be for another node, or another one's. Otherwise one
    // comes for the mail, if no body takes longer than was predicted.
    if (has_stale_mail(clock_.ticks()))
      inside ? take_turn(nullptr) : take_turn_waiting();
    else if (std::ranges::all_of(executors_.near(), [](const executor* e) { return e->is_held_up(); }))
      alarm_.ring_soon();
    else
      alarm_.ring_later();
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
  return mail_.submit(tasks, in_flight_.submissions(), inside, [this](const task_record& t) {
    if (turns_.aside().are_wanted()) turns_.aside().note_posted(t, mail_.next_fetch());
  });
}

// Orders a task in a side turn of the calling thread, and hands it to the cores if it is ready; false: it has to be
// posted. Nothing is decided here that a turn would have to know of: the task is early.
bool placement::order_aside(task_record& t) {
  if (t.kind != task_kind::call || !is_plain(t) || !side_orders::is_simple(t)) return false;
  const std::size_t side = side_turns::of_thread();
  side_turns& turns = turns_.aside();
  bool told = false, taken = false, released = false, posted = false, waited = false;
  late_wakes late;
  if ((!turns.is_for_turn(t) && turns.try_take(side, told)) || await_side_turn(t, side, told, waited)) {
    late.begin();
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
        late_wakes::due due = late.end();
        (void)turns.leave(side);  // the turn that is taken now tells
        due.wake();
        return end_failed_aside(unordered);
      }
    }
    late_wakes::due due = late.end();
    told = turns.leave(side) || told;
    due.wake();
  }
  if (waited) turns.note_waited(side, !taken);
  if (released) executors_[0].after_turn();
  if (told) turnless_.turn_left();
  if (posted) take_turn(nullptr);
  return taken;
}

// Waits until the task may be ordered aside, as far as side turns tell, and takes the side turn; false: in vain, or, if
// it has not `waited`, not worth it. Handles the mail that its arrays are in: other threads may not come for it soon.
bool placement::await_side_turn(task_record& t, std::size_t side, bool& told, bool& waited) {
  side_turns& turns = turns_.aside();
  if (!turns.is_to_wait(side)) return false;
  waited = true;
  const auto limit = static_cast<std::uint64_t>(side_wait_ns / clock_.ns_per_tick());
  const std::uint64_t begun = clock_.ticks();
  for (int looks = 0; turns.are_wanted() && looks < looks_max && clock_.ticks() - begun < limit; ++looks) {
    const bool for_turn = turns.is_for_turn(t);
    if (for_turn && take_turn_waiting()) continue;
    if (!for_turn && turns.try_take(side, told)) return true;
    if (looks < pauses)
      spin_lock::pause();
    else
      std::this_thread::yield();
  }
  return false;
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
