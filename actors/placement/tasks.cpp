// What this file is for: the states of a task in turns: ordered, ready, admitted, given to an executor, retired.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <atomic>
#include <optional>

#include <troupe/error.hpp>

#include "actors/execution/graph_part.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/logic/data/reduction.hpp"
#include "actors/logic/data/region.hpp"
#include "actors/memory/internal_tasks.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/chaining.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/successors.hpp"

namespace troupe::detail {

// ---- ordering -------------------------------------------------------------------------------------------------------

// True if its options ask for nothing that placement has to give or to tell when the task is ready.
bool placement::is_plain(const task_record& t) {
  return !t.extra || !(t.extra->listener || logic::admission::concerns(t));
}

namespace {
// True if each of its accesses is noted in the array's history: where nothing is touched, nothing tells that the array
// is in use.
bool is_in_histories(const task_record& t) {
  return std::all_of(t.accesses, t.accesses + t.access_count,
                     [](const access& x) { return !x.array || !x.where || logic::touches_any(*x.where); });
}
}  // namespace

// Predicts a call about which there will be nothing to decide. Beside devices these are the calls that only the cores
// can run, if none of their arrays may have left host memory: those that others may run say so when they are ordered.
void placement::foresee(task_record& t) {
  if (!releases_early()) return;
  if (executors_.has_devices()) {
    if (t.kind != task_kind::call && t.kind != task_kind::graph_run) return;
    if (!assignment_.is_for_cores(t)) return logic::note_may_leave(t);
    if (!logic::stays_at_home(t)) return;
  }
  if (t.kind == task_kind::call && is_plain(t) && is_in_histories(t))
    assignment_.foresee(t, deps_.graph().last_number() + 1);
}

// Any thread.
bool placement::predict_anew(task_record& t) const {
  const std::optional<float> now = assignment_.grown().of(*t.kernel, logic::assignment::bytes_of(t));
  if (!now) return false;
  if (*now > 0) change_prediction(t, *now);
  return true;
}

void placement::order(task_record& t) {
  foresee(t);
  deps_.allow_gates(!executors_.has_devices() && !executors_.limits_memory() && !turns_.aside().are_wanted());
  // A task comes with one pending count, its submission, taken off here.
  deps_.order(t, work_.made());
  trace_.add_found_edges();
  if (trace_.is_on()) trace_.note_ordered(t);
  t.id = t.sequence;
  work_.each_made([&](task_record& s) {
    if (--s.pending == 0) make_ready(s);
  });
  if (executors_.has_devices()) {
    gangs_.ordered(t, chains_.found());
    chains_.note_ordered(t);
  }
  if (t.pending.fetch_sub(1, std::memory_order_acq_rel) == 1)
    make_ready(t);
  else if (executors_.has_devices())
    chains_.send_behind(t);
}

// Places parts of runs over several nodes that had to wait for others of their run, or for runs before it. Some may
// retire, as they have been cancelled.
void placement::let_parts_go() {
  while (gangs_.has_due()) {
    const gangs::due d = gangs_.take_due();
    if (d.is_ready)
      make_ready(*d.part);
    else if (d.part->pending.load(std::memory_order_relaxed) > 0)
      chains_.send_behind(*d.part);
    work_off();
  }
}

task_record* placement::make_combine(array_core& a, reduction& r) { return detail::make_combine(rt_, a, r); }

task_record* placement::make_gate() noexcept try { return detail::make_gate(rt_); } catch (const std::bad_alloc&) {
  return nullptr;
}

bool placement::pass_gate(task_record& gate) {
  task_record* const one = &gate;
  task_record* left = nullptr;
  return turnless_.retire({&one, 1}, &left) == 0;
}

// ---- ready ----------------------------------------------------------------------------------------------------------

void placement::make_ready(task_record& t) {
  if (t.marks & mark_chained) {  // the device has the task
    t.marks &= static_cast<std::uint16_t>(~mark_chained);
    if (t.marks & mark_ended_early)
      work_.to_retire(t);
    else
      chains_.send_successors(t);  // there is room again
    return;
  }
  if (t.kind == task_kind::gate) {
    work_.to_retire(t);
    return;
  }
  end_failed_join(t);
  if (ending_.has_begun() && t.kind != task_kind::farewell) abandon(t);
  if ((t.phase.load(std::memory_order_acquire) & phase_mask) != phase_waiting) {
    retire_ended(t);  // failed or cancelled before it could start
    return;
  }
  switch (t.kind) {
    case task_kind::farewell:
      work_.to_retire(t);  // free() ends it when the array is gone
      return;
    case task_kind::join:
      if (claim(t)) fulfil(t, board_);
      work_.to_retire(t);
      return;
    case task_kind::host_access:
      if (executors_.limits_memory() && must_wait_for_data(t)) return;
      if (!claim(t)) {
        retire_ended(t);  // cancelled just now
        return;
      }
      // Granted: it counts as finished, and retires when the view is closed.
      fulfil(t, board_);
      if (t.marks & mark_given_up) {
        work_.to_retire(t);
        return;
      }
      t.marks |= mark_open;
      in_flight_.note_granted();
      if (t.extra && t.extra->listener) {
        t.extra->listener->granted(t);
        notifications_.add(*t.extra->listener);
      }
      return;
    default:
      if (t.marks & mark_sent)
        assignment_.resume(t);  // the data that it waited for has come
      else if (gangs_.may_go(t, true))
        admit(t);
  }
}

// Places a task again that its executor has returned. `setback`: others may have been sent behind it.
void placement::place_again(task_record& t, bool setback) {
  chains_.note_not_handed(t);
  chains_.note_returned(t, setback);
  if (log_) log_->note_not_run(t, assignment_.space_of(t));
  if (executors_.has_devices()) logic::forget_parts(t);
  assignment_.take_back(t);
  gangs_.came_back(t);
  if (t.marks & mark_has_room) host_memory_->give_back(t);
  t.marks &= static_cast<std::uint16_t>(~(mark_handed | mark_chain_head | mark_chained | mark_uncertain));
  if (t.extra && std::exchange(t.extra->refused, false)) {
    const std::uint16_t id = assignment_.facts()[t.executor].id;
    t.extra->executors.erase(id);
    t.extra->refused_by.emplace_back(id, reason_of(t.extra->refusal));
  }
  t.phase.fetch_and(~epoch_mask, std::memory_order_acq_rel);
  if (std::exception_ptr why = fates_.take_failure(t)) fail(t, std::move(why), false);
  t.marks |= mark_came_back;
  if (t.pending > 0) return;  // its predecessors have not ended
  if (ending_.has_begun()) abandon(t);
  if ((t.phase.load(std::memory_order_acquire) & phase_mask) != phase_waiting) {
    retire_ended(t);
    return;
  }
  if (!gangs_.may_go(t, true)) return admission_.finished(t);  // it is admitted once it may
  logic::admission::holds_elsewhere(t) ? admit_again(t) : assign(t);
}

// Queues a task for admission again, and releases its resources: they belong to a node that does not run it.
void placement::admit_again(task_record& t) {
  admission_.finished(t);
  admission_.queue(t);
}

// Nodes may have been given tasks which come after one that has come back, and that write what it touches. It must not
// run there. What it reads has come home since, as a rule; else it is lost with such a node.
void placement::keep_from_others(task_record& t) {
  chains_.each_that_went_on(t, [&](const executor& e, array_core& a, std::uint32_t tile) {
    const std::pair<array_core*, std::uint32_t> one{&a, tile};
    if (a.coherence->tiles[tile].dirty_in == e.facts().space)
      lose(e, {&one, 1}, std::make_exception_ptr(error(errc::data_lost, "it has gone on, and has overwritten it")));
    task_extra& x = extra_of(t);
    if (!x.executors.contains(e.facts().id)) return;
    x.executors.erase(e.facts().id);
    x.refused_by.emplace_back(e.facts().id, "it has gone on, and has overwritten what the task is to find");
  });
}

// Lets the cores here run a task whatever its scope, as they repeat what is lost, if the nodes that are left have gone
// on, and have overwritten what it is to find. False if they have not.
bool placement::let_cores_run(task_record& t) {
  if (!t.extra || t.extra->refused_by.empty() || t.extra->refusal) return false;
  for (const executor* e : executors_.near())
    if (e->facts().space == host_space) t.extra->executors.insert(e->facts().id);
  return assignment_.can_run(t);
}

void placement::assign(task_record& t) {
  if (fates_.has_lost_inputs()) lose_overwritten_inputs(t);
  if (t.marks & mark_came_back) keep_from_others(t);
  look_up_scope(t);
  if (!leaving_.empty() && is_graph_part(t) && (t.extra->executors - leaving_).empty()) return refuse(t, part_left(t));
  if (!executors_.has_devices() || assignment_.can_run(t) ||
      (!logic::admission::holds_elsewhere(t) && let_cores_run(t))) {
    (t.marks & mark_came_back) ? assignment_.assign_again(t) : assignment_.assign(t);
    return;
  }
  if (logic::admission::holds_elsewhere(t)) return admit_again(t);
  end_of_wait(t, nobody_left(t));
}

// Treats tiles that a returned task needs, and that its node has overwritten, as lost with the node: the tasks that
// have overwritten them there end after this task.
void placement::lose_overwritten_inputs(const task_record& t) {
  for (const task_fates::lost_input& o : fates_.take_lost_inputs(t)) {
    const std::pair<array_core*, std::uint32_t> one{o.array, o.tile};
    lose(*o.at, {&one, 1},
         std::make_exception_ptr(error(errc::out_of_memory, "it could not run all that it was given, and went on")));
  }
}

void placement::admit(task_record& t) {
  if (logic::admission::concerns(t))
    admission_.queue(t);
  else
    assign(t);
}

memory_space placement::space_of(const held_device& d) const {
  const auto is = [&](const executor* e) { return e->facts().name == d.name; };
  const auto at = std::ranges::find_if(executors_.near(), is);
  return at == executors_.near().end() ? host_space : (*at)->facts().space;
}

// Admits queued tasks if something has changed; inlined, as it runs in every turn and there is mostly nothing.
void placement::admit_waiting(std::uint64_t now) {
  if (admission_.has_changed()) admit_some(now);
}

void placement::admit_some(std::uint64_t now) {
  admission_.admit(
      now,
      [&](task_record& t) {
        look_up_scope(t);
        return assignment_.nodes_for(t);
      },
      [&](task_record& t) { assign(t); }, [&](task_record& t) { end_of_wait(t, no_quantity(t)); },
      [&](const task_record& t) {
        return static_cast<std::uint64_t>(static_cast<double>(assignment_.predicted_ns(t)) / clock_.ns_per_tick());
      },
      [&](const task_record& t, const held_device& d) { return assignment_.missing_bytes(t, space_of(d)); });
  alarm_.ring_at(admission_.due(), now, clock_.ns_per_tick());
}

void placement::room_granted(task_record& t) {
  if (t.kind == task_kind::host_access)
    make_ready(t);
  else
    assignment_.resume(t);
}

void placement::room_refused(task_record& t, const std::exception_ptr& why) { fail_unstarted(t, why); }

// ---- retiring -------------------------------------------------------------------------------------------------------

// Retires tasks until none is left: retiring makes tasks ready, and some of those (joins, failed ones) retire at once.
void placement::work_off() {
  work_.retire_all([this](task_record& t) { retire(t); });
}

// Counts a chunk of a for_each at the executor that ran it, for `explain`. Any thread, before its join is released.
void placement::note_chunk(const task_record& t) {
  if (!was_placed(t) || t.measured_ns == never_ran || (t.error && !has_run(t.error))) return;
  const task_record& join = *successor::from(t.successors[0]).task;
  if (join.extra && t.executor < join.extra->chunks_at.size())
    std::atomic_ref(join.extra->chunks_at[t.executor]).fetch_add(1, std::memory_order_relaxed);
}

// Has a call not repeated. It has ended well before one failed that it comes after, whose outputs it has read: what it
// would read now is something else.
void placement::forget_call(task_record& t) {
  if (t.extra && !t.error) t.extra->call = nullptr;
}

void placement::retire(task_record& t) {
  const bool chains = executors_.has_devices();
  if (chains && chains_.has_ended_early(t)) return;
  if (chains && fates_.take_failure(t)) forget_call(t);
  fates_.forget(t);
  assignment_.finished(t);
  note_outdated();
  if (executors_.limits_memory()) account_for_data(t);
  if (chains) chains_.note_not_handed(t);
  if (chains) lose_written(t);
  if ((t.marks & mark_chunk) && !is_sealed(t)) {
    note_chunk(t);
    task_extra* const all = successor::from(t.successors[0]).task->extra;
    if (t.extra && all) all->data_wait_ns = std::max(all->data_wait_ns, t.extra->data_wait_ns);
  }
  // A task that waited for a copy that is lost finds out itself whether it needed the copy.
  if (t.kind >= task_kind::transfer) t.error = nullptr;
  if (chains) gangs_.retires(t);
  deps_.retire(
      t, [&](task_record& next) { make_ready(next); },
      [&](task_record& next) {
        if (!chains) return;
        gangs_.waits_for_fewer(next);
        chains_.note_fewer(next);
      });
  if (chains) chains_.send_fewer();
  if (chains) chains_.send_blocked_by(t);
  admission_.finished(t);
  for (int i = 0; i < t.access_count && !(t.marks & mark_early); ++i) {  // early ones are in no count
    access& x = t.accesses[i];
    if (!x.array) continue;
    array_core& a = *x.array;
    --a.users;
    if (a.dropped && a.users == 0) free_if_unused(a);
  }
  if (t.kind == task_kind::combine) delete t.accesses[0].where->partials;
  if (is_internal(t.kind))  // not submitted, so not counted: the tasks that need it are
    ;
  else if (t.marks & mark_open)
    in_flight_.note_closed();
  else
    in_flight_.note_retired();
  drop_inputs(t);
  if (t.extra && t.extra->listener) {
    notifications_.add(*t.extra->listener);
    t.extra->listener->retired(t);
  }
  // The last reference is the only one from which more could be made: where the future is gone, a load is enough.
  if (t.references.load(std::memory_order_acquire) == 1 || t.references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    if (t.extra || !t.ops) {
      recycle(&t);
      return;
    }
    drop_result(t);
    t.error = nullptr;
    spent_.add(t);
  }
}

// Admits the waiting tasks that a node which has joined can run. The others wait on until their own deadlines.
void placement::try_absent() {
  const auto can_run = [&](task_record& t) {
    look_up_scope(t);
    return assignment_.can_run(t) && admission_.could_have(t, assignment_.nodes_for(t));
  };
  for (task_record* t : absent_.take(can_run)) admit(*t);
}

void placement::look_at_absent(std::uint64_t now) {
  const std::uint64_t next = absent_.look(
      now, [&](task_record& t) { retire_ended(t); },
      [&](task_record& t, const std::exception_ptr& why) { refuse(t, why); });
  alarm_.ring_at(next, now, clock_.ns_per_tick());
  work_off();
}

}  // namespace troupe::detail
