// What this file is for: waiting inside a body without holding a slot, and threads from outside that help.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <optional>

#include <troupe/error.hpp>

#include "actors/core_group/actor.hpp"
#include "actors/logic/scheduling/admission.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/task_name.hpp"

namespace troupe::detail {

namespace {
// Bodies that wait for bodies run on one stack down to this depth; beyond, the waiter sleeps.
constexpr int depth_max = 128;

[[noreturn]] void throw_deadlock(const task_record& body, const task_record& awaited) {
  throw error(errc::would_deadlock,
              "task '" + name_of(body) + "' waits for '" + name_of(awaited) +
                  "', which can only go on after it, or needs a resource that it holds: wait outside the task");
}
}  // namespace

// ---- waiting inside a body ------------------------------------------------------------------------------------------

// Counts a body as waiting while it lives: placement counts it neither as using a slot nor as ending soon, since the
// awaited task may have to be given its slot. While the awaited task runs on the same stack, that one uses the slot.
class group_actor::waiting_body {
 public:
  waiting_body(group_actor& g, const worker& w) : group_(g), body_(w.body()) { group_.note_waiting(body_, 1); }
  ~waiting_body() { group_.note_waiting(body_, -1); }
  waiting_body(const waiting_body&) = delete;
  waiting_body& operator=(const waiting_body&) = delete;

 private:
  group_actor& group_;
  const worker::standing body_;
};

void group_actor::note_waiting(const worker::standing& body, int sign) {
  if (!body.early) waiting_.count(body, sign);  // nor was it counted as running
  placement_.waits_changed();
}

// Gives away all work of a thread that goes to sleep inside a body.
void group_actor::put_down(worker& self) {
  outside_.rest(self.network);
  report_done(self, nullptr);
  return_batch(self, nullptr);
  lay_out_hands(self);
  if (self.active) {
    awake_.fetch_sub(1, std::memory_order_seq_cst);
    placement_.became_idle();
  }
  passers_.ended(self);
  self.show_slots(false);
}

// Gives away all slots and all work of a thread that goes to sleep inside a body.
void group_actor::leave_slots(worker& self) {
  put_down(self);
  const bool restless = self.parking_state.restless != 0;
  make_spares(parking_.give_all_slots(self.parking_state));
  // A restless body, which may leave and come a thousand times a second, has one thread begin something (`relieve`).
  if (const std::size_t n = queue_.size_now(); n != 0 && (!restless || parking_.sleepers() != 0))
    wake(n, parking::nearness::far);
  placement_.take_turn(nullptr);  // mail, and tasks for which there was no slot
  if (restless && !queue_.empty()) make_spares(parking_.relieve());
}

// Counts a thread as awake that goes on inside a body.
void group_actor::take_up(worker& self) {
  if (!self.active) return;
  placement_.became_active();
  awake_.fetch_add(1, std::memory_order_seq_cst);
}

void group_actor::come_back(worker& self, std::chrono::steady_clock::time_point until) {
  take_up(self);
  parking_.take_slots(self.parking_state, until);
  self.show_slots(true);
}

void group_actor::give_slot(worker& self) {
  note_waiting(self.body(), 1);
  leave_slots(self);
}

void group_actor::take_slot(worker& self) {
  come_back(self);
  note_waiting(self.body(), -1);
}

bool group_actor::wait_inside(worker& self, task_record& awaited, wait_table& board,
                              std::chrono::steady_clock::time_point deadline) {
  std::optional<waiting_body> here;
  if (!self.yielded) here.emplace(*this, self);
  report_done(self, nullptr);
  placement_.take_turn(nullptr);
  if (is_fulfilled(awaited)) return true;
  // The awaited task runs here if it is ready and no thread has it: the same order on the stack as a plain call.
  // Without a slot nothing may run here, and a task that was begun here could not be left when the deadline passes.
  const bool is_unlimited = deadline == std::chrono::steady_clock::time_point::max();
  if (is_unlimited && !self.yielded && self.depth() < depth_max &&
      (return_batch(self, &awaited) || queue_.take(awaited))) {
    lay_out_hands(self);
    run_and_report(self, awaited, nullptr);
    return true;
  }
  const task_record* const body = self.context()->task();
  task_record* const inside = &self.context()->ordered_task();
  // Other bodies of a run may go on: as a whole it does not wait.
  if (inside->rt == awaited.rt && (is_unlimited || self.is_to_ask(inside, &awaited)) &&
      placement_.would_deadlock(*inside, awaited, is_unlimited && inside == body))
    throw_deadlock(*body, awaited);
  if (is_fulfilled(awaited)) return true;
  if (self.yielded) return board.wait(awaited, deadline);
  leave_slots(self);
  // What the awaited task comes after may need, once it is ready, what the body holds: this is asked again.
  const bool asks = is_unlimited && inside->rt == awaited.rt && logic::admission::concerns(*inside);
  const auto goes_on = [&] { return !placement_.would_deadlock(*inside, awaited, false) || is_fulfilled(awaited); };
  const bool finished = asks ? board.wait_asking(awaited, goes_on) : board.wait(awaited, deadline);
  come_back(self, deadline);
  if (asks && !finished) throw_deadlock(*body, awaited);
  return finished;
}

// ---- helping threads ------------------------------------------------------------------------------------------------

bool group_actor::help_with(task_record& awaited, const std::function<void()>& begin) {
  if (queue_.empty() || !parking_.borrow_slot()) return false;
  const bool mine = queue_.take(awaited);
  if (mine) {
    begin();
    // A helping thread has no worker in the group: it borrows one, which is kept for the next time.
    worker& helper = threads_.take_helper();
    worker* before = std::exchange(this_worker, &helper);
    try {
      helper.run(awaited);
    } catch (...) {  // the body has ended the thread that helps
      this_worker = before;
      give_helper(helper);
      parking_.return_slot();
      throw;
    }
    this_worker = before;
    give_helper(helper);
  }
  make_spares(parking_.return_slot());
  if (mine) {
    task_record* done = &awaited;
    placement_.report_done({&done, 1}, nullptr);
  }
  return mine;
}

// Gives a borrowed worker back.
void group_actor::give_helper(worker& g) {
  if (g.parking_state.restless != 0) parking_.calm(g.parking_state);
  g.lane.flush();  // no thread of its own would flush it at the end
  g.parking_state.looks.clear();
  threads_.give_helper(g);
}

// ---- the outside ----------------------------------------------------------------------------------------------------

task_context* current_context() noexcept { return this_worker ? this_worker->context() : nullptr; }

task_record* current_task() noexcept {
  const run_context* c = this_worker ? this_worker->context() : nullptr;
  return c ? c->task() : nullptr;
}

bool wait_inside(task_record& awaited, wait_table& board, std::chrono::steady_clock::time_point deadline) {
  return this_worker->owner().wait_inside(*this_worker, awaited, board, deadline);
}

bool leave_slot() {
  if (!current_task() || this_worker->yielded) return false;
  this_worker->owner().give_slot(*this_worker);
  this_worker->yielded = true;
  return true;
}

void take_slot() {
  this_worker->owner().take_slot(*this_worker);
  this_worker->yielded = false;
}

}  // namespace troupe::detail
