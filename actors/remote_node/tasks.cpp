// What this file is for: tasks on another node: sent in batches, in the order of their data; what comes of their ends.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>
#include <vector>

#include <troupe/error.hpp>

#include "actors/execution/graph_part.hpp"
#include "actors/execution/reexecution.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/protocol/chaining.hpp"
#include "actors/remote_node/actor.hpp"
#include "actors/wire/rows.hpp"

namespace troupe::detail {

namespace {

// Tasks that are under way at most, in all or for each thread of the node, whichever is more. Enough for links of a
// millisecond. With 8,192 the tasks' data has left the node's caches before their turn comes: tiny tasks cost both
// nodes together a quarter to a third more.
constexpr std::size_t under_way_max = 1024, under_way_each = 32;
// Tasks under way, beyond one for each thread, with which the node does not run dry before it says something.
constexpr std::size_t plenty = 64;
// Calls that are then sent at a time: a frame and a system call for each would cost more than the tasks.
constexpr std::size_t gathered_max = 32;
// Bytes that wait to be taken by the peer, beyond which nothing is added.
constexpr std::size_t unsent_bytes_max = 16u << 20;
// Nodes that have gone while they had a task, after which it is given up; from the second on only those count on which
// the task had begun.
constexpr int attempts_max = 3;

// Returns the error of a run of a graph's part of which a call has failed.
std::exception_ptr call_error(const task_record& run, const std::string& node, const wire::task_end& e) {
  const auto cause = std::make_exception_ptr(error(e.code, e.text));
  const errc code = e.attempts > 0 ? errc::task_failed : e.code;  // what a body throws is the cause
  return run_error(run, std::make_exception_ptr(task_failed(code, e.text, e.root, node, e.root, e.attempts, cause)));
}

// Returns the access that was sent under that number, or null: those that only wait for other tasks are not sent.
const access* access_numbered(const task_record& t, std::uint32_t number) {
  for (int i = 0; i < t.access_count; ++i)
    if (t.accesses[i].array && number-- == 0) return &t.accesses[i];
  return nullptr;
}

}  // namespace

// ---- sending --------------------------------------------------------------------------------------------------------

// Sends what is queued, as far as the node has room; returns true if the rest is to be sent in a moment.
bool node_actor::send_some() {
  if (!occupant_.has_session()) {
    // Tasks stay in the queue while lose() is still accounting for what was there.
    if (known_.empty()) turn_away(std::make_exception_ptr(error(errc::node_lost, "it is gone")));
    return false;
  }
  give_up_unwanted();
  for (;;) {
    const std::size_t most = std::max(under_way_max, under_way_each * static_cast<std::size_t>(occupant_.slots()));
    task_record* const t = queue_.take_next(jobs_.running() < most);
    keep_promises(t);  // after that: what the task overwrites may have been promised
    if (!t) break;
    if (!is_internal(t->kind)) {
      const std::uint64_t number = t->sequence;
      start_task(*t);
      keep_promises_of(number);
    } else {
      flush();  // what it asks for comes after what has been sent before
      if (!start_internal(*t)) queue_.put_off(*t);
    }
    if (!frame_.is_full()) continue;
    flush();
    if (occupant_.session()->unsent() > unsent_bytes_max) return true;
  }
  flush();
  try_waiting_lends();
  return false;
}

// Returns whether what is queued may wait: until there is a batch, until something comes from the node, or a moment.
send_queue::need node_actor::urgency() const {
  if (!occupant_.has_session() || jobs_.running() < static_cast<std::size_t>(occupant_.slots()) + plenty)
    return send_queue::need::send_now;
  return queue_.urgency(gathered_max);
}

// Empties the queue, because no node is there: calls that waited for their data when it went run elsewhere, and
// transfers fail.
void node_actor::turn_away(const std::exception_ptr& why) {
  const send_queue::rest all = queue_.take_all();
  for (task_record* t : all.internal) {
    claim(*t);
    end_internal(*t, t->kind == task_kind::forget ? nullptr : lost_with(*t, why));
  }
  for (task_record* t : all.calls) give_back(*t);
}

void node_actor::start_task(task_record& t) {
  const std::uint32_t phase = t.phase.load(std::memory_order_acquire);
  if ((phase & phase_mask) != phase_waiting) return end_cancelled(t);
  // A chained task, and the tasks that it comes after may not have run well.
  if (is_chained(phase) && epoch_of(phase) != epoch_mark(failure_epoch_)) return give_back(t);
  if (!find_lenders(t)) {
    t.extra->no_pulls = true;
    return give_back(t);
  }
  if (!claim(t)) return end_cancelled(t);
  if (is_chained(phase)) counts_.add_behind();
  job& j = take_job(t);
  const auto undo = [&] {
    if (j.data) j.data->context.roll_back();
    take_back_lends(j);
    give_up_unused();
    pushes_.drop(j.id);
    give_job(j);
    known_.forget_read(t);  // what was not there was to be asked for by this task
    ++failure_epoch_;
  };
  try {
    encode(j);
    give_up_unused();
    if (!is_repeatable(t)) ask_for_written(j);
  } catch (const too_much&) {
    const std::exception_ptr why = std::current_exception();
    undo();
    refuse(t, task_error(t, peer_name(), 0, why, failure_code(why)));
    come_back(t);
  } catch (...) {
    const std::exception_ptr why = std::current_exception();
    undo();
    counts_.add_bodies(1, 1);  // an attempt, as on a core that has no memory for its views
    end_task(t, task_error(t, peer_name(), 1, why, failure_code(why)), 0);
  }
}

// ---- the end of tasks -----------------------------------------------------------------------------------------------

// Returns the error that the task has ended with, or null: it ran well, or something of it is still on its way.
std::exception_ptr node_actor::finish(job& j, const wire::task_end& e) {
  if (is_internal(j.task->kind)) throw error(errc::protocol_error, "the end of a task that is none");
  if (e.how == wire::outcome::ran && e.in_sum) {
    if (j.group == 0) throw error(errc::protocol_error, "a sum with what is no partial");
    j.end = e;
    jobs_.rest(j);
    settle_sum(j);
    return nullptr;
  }
  if (j.is_touched() || (e.how == wire::outcome::ran && j.is_awaited())) {
    // The task's memory here is being written or read, or what it wrote for this node is still on its way.
    j.end = e;
    return nullptr;
  }
  task_record& t = *j.task;
  const std::exception_ptr why = take_results(j, e);
  if (why) take_back_lends(j);
  if (!why && !j.brought.empty() && t.extra && t.extra->call)
    static_cast<const repeatable_call*>(t.extra->call.get())->brought = std::move(j.brought);
  give_job(j);
  const bool no_room = why && lacks_room(t, e), unfilled = e.how == wire::outcome::unfilled;
  const bool comes_back = no_room || unfilled || e.how == wire::outcome::not_run;
  // A node that is leaving runs nothing of what comes after the task either.
  const bool touched = e.how != wire::outcome::not_run || e.code != errc::runtime_stopped;
  if (why) {
    ++failure_epoch_;
    // Copies first, of all tiles: what is known of the tiles changes next.
    auto wrote = j.wrote.begin();
    known_.each_written(t, [&](const access& x) { copies_.spoil(*x.array, x.tile, *wrote++); });
    known_.note_not_written(j, t, touched, no_room || unfilled ? &report_.lost : nullptr);
    if (!report_.lost.empty() && !report_.lost_why)
      report_.lost_why = std::make_exception_ptr(unfilled ? error(e.code, e.text)
                                                          : error(errc::out_of_memory, "it was short of memory"));
  }
  const bool is_overwritten = comes_back && touched && known_.is_overwritten(j, t, report_.overwritten_inputs);
  if (no_room || is_overwritten) refuse(t, no_room ? why : nullptr);
  if (comes_back)
    come_back(t);
  else
    end_task(t, why, e.measured_ns);
  return why;
}

// The task has ended, and its partial comes in a sum: it ends with all that have theirs in it.
void node_actor::settle_sum(job& j) {
  job* const carrier = j.carried_by != 0 ? jobs_.find(j.carried_by) : &j;
  const auto is_ready = [](const job* k) { return k && k->end && k->end->in_sum && !k->is_touched(); };
  if (!is_ready(carrier) || carrier->is_awaited()) return;
  const std::vector<std::uint64_t> others = carrier->carries;
  if (!std::ranges::all_of(others, [&](std::uint64_t id) { return is_ready(jobs_.find(id)); })) return;
  // All at once: a node that goes has had all of them, or none.
  std::vector<wire::task_end> ends{*carrier->end};
  carrier->carries.clear();
  for (const std::uint64_t id : others) {
    job& k = *jobs_.find(id);
    ends.push_back(*k.end);
    k.carried_by = 0;
    k.data->awaited = 0;
    k.data->to.front().partial.reset();
  }
  std::exception_ptr why;
  for (wire::task_end& e : ends) {
    e.in_sum = false;
    if (why) {
      e.how = wire::outcome::failed;
      e.code = failure_code(why);
      e.text = text_of(why);
    }
    const std::exception_ptr now = finish(*jobs_.find(e.id), e);
    if (!why) why = now;
  }
}

// Takes what has come with the end of a task: what it wrote for memory of this node, and copies of tiles that it wrote
// there, which placement takes over when the task retires.
void node_actor::take_written(job& j, wire::task_end& e) {
  for (const wire::written_box& w : std::exchange(e.written, {})) {
    if (job::back* const b = j.back_of(w.access)) {
      if (b->writing || b->has_come) throw error(errc::protocol_error, "what a task has written came twice");
      const net::pieces to = b->pieces();
      std::size_t room = 0;
      for (const auto& piece : to) room += piece.size();
      if (room != w.bytes.size()) throw error(errc::protocol_error, "what a task has written is of another size");
      copy_into(to, w.bytes.data());
      b->has_come = true;
      --j.data->awaited;
      counts_.add_bytes_in(room);
      continue;
    }
    const access* const x =
        std::ranges::find(j.copied, w.access) != j.copied.end() ? access_numbered(*j.task, w.access) : nullptr;
    if (!x || x->array->bytes_of(x->tile) != w.bytes.size())
      throw error(errc::protocol_error, "a copy that was not asked for, or of another size");
    loose_bytes bytes;
    try {
      bytes = new_loose_bytes(rt_, w.bytes.size());
    } catch (const error&) {  // for want of memory: it is fetched when it is needed
      continue;
    }
    std::ranges::copy(w.bytes, bytes.get());
    j.brought.push_back({x->array, x->tile, 0, std::move(bytes)});
    counts_.add_bytes_in(w.bytes.size());
  }
}

// Takes over what an ended task has sent back, if it ran well; returns the error that it ends with, or null.
std::exception_ptr node_actor::take_results(job& j, const wire::task_end& e) {
  task_record& t = *j.task;
  std::exception_ptr why;
  if (e.how != wire::outcome::ran) {
    why = task_error(t, occupant_.session()->peer().name, e.attempts, std::make_exception_ptr(error(e.code, e.text)),
                     lacks_room(t, e) && e.code != errc::unreachable ? e.code : errc::task_failed);
    if (e.code == errc::cancelled) why = stopped_error(t, occupant_.session()->peer().name);
    if (is_graph_part(t) && !e.root.empty()) why = call_error(t, occupant_.session()->peer().name, e);
  }
  if (j.data) {
    try {
      if (why) {
        j.data->context.roll_back();
      } else {
        for (job::back& b : j.data->to) {
          if (b.partial) add_partial(j, b);
          b.take_over();
        }
        j.data->context.commit();
      }
    } catch (...) {
      const std::exception_ptr here = std::current_exception();
      why = task_error(t, peer_name(), e.attempts, here, failure_code(here));
    }
  }
  return why;
}

namespace {
int tries_max(const task_record& t) { return 1 + (t.extra ? std::max(0, t.extra->options.retries) : 0); }
}  // namespace

// Counts a body that has thrown, as soon as the node tells it: the node may go before it tells the task's end.
void node_actor::count_tried(job& j) {
  if (is_internal(j.task->kind) || j.end || ++j.tried >= tries_max(*j.task))
    throw error(errc::protocol_error, "a task was tried again that had no attempt left");
  j.begun = true;  // the next one
  counts_.add_bodies(1, 1);
}

// Counts the bodies of a task that has ended, but for those that count_tried has counted.
void node_actor::count_bodies(const job& j, const wire::task_end& e) {
  const int threw = e.attempts - (e.how == wire::outcome::ran ? 1 : 0);
  if (e.attempts > tries_max(*j.task) || threw < j.tried)
    throw error(errc::protocol_error, "a task that ended after another number of attempts than it had");
  counts_.add_bodies(static_cast<std::uint64_t>(e.attempts - j.tried), static_cast<std::uint64_t>(threw - j.tried));
}

// Counts a body of a task whose node has gone: if it is known to have begun, or the task ends with it. Those of which
// the node had told are counted already.
void node_actor::count_lost(const job& j, bool ends) {
  if (j.end || (!j.begun && !ends)) return;
  counts_.add_bodies(1, 1);
}

void node_actor::finish_awaited(job& j) {
  if (!j.end) return;
  const wire::task_end end = *j.end;
  finish(j, end);
}

// Returns true if the task ended because the node is short of memory or of disk: others may have more.
bool node_actor::lacks_room(const task_record& t, const wire::task_end& e) {
  if (e.how == wire::outcome::no_room) return true;
  return e.how == wire::outcome::failed && (e.code == errc::out_of_memory || e.code == errc::disk_full) &&
         t.kernel->repeat != purity::once;
}

// Adds the partial that has come to one of this node's own, which the job's context has taken.
void node_actor::add_partial(job& j, const job::back& b) {
  const region& r = *j.task->accesses[b.access].where;
  const raw_view mine = j.data->context.view_of(b.access);
  std::size_t count = 1, there = 1;
  for (int d = 0; d < rank_max; ++d) {
    count *= static_cast<std::size_t>(b.to.hi[d] - b.to.lo[d]);
    there *= static_cast<std::size_t>(mine.hi[d] - mine.lo[d]);
  }
  if (count != there) throw error(errc::out_of_bounds, "a reduction of another size than its array");
  r.combiner->combine(mine.data, b.partial.get(), count);
}

void node_actor::end_task(task_record& t, std::exception_ptr why, float measured_ns) {
  counts_.add_busy(measured_ns);
  t.measured_ns = measured_ns;  // 0: it was too short to be timed there
  t.error = std::move(why);
  if (!t.body_gone) drop_body(t, peer_name());
  fulfil(t, board_);
  report_.done.push_back(&t);
}

// Asks the node to give the newest tasks back. As many as it has threads are left there, because they may have begun;
// tasks that have begun, or whose bytes are on their way, end there. A task that comes back spoils the tiles that it
// writes, so none is recalled that writes what only the node has: that would have to be made again.
void node_actor::recall(const std::function<bool(const task_record&)>& wanted) {
  std::lock_guard hold(lock_);
  if (!occupant_.has_session()) return;
  std::vector<job*> waiting;
  jobs_.each([&](job& j) {
    if (!j.recalled && !j.begun && !j.end && !known_.would_spoil(j) && wanted(*j.task)) waiting.push_back(&j);
  });
  const std::size_t under_way = jobs_.running();
  if (under_way <= static_cast<std::size_t>(occupant_.slots())) return;
  const std::size_t most = std::min(under_way - static_cast<std::size_t>(occupant_.slots()), wire::recalled_max);
  std::ranges::sort(waiting, std::greater<>{}, &job::id);
  if (waiting.size() > most) waiting.resize(most);
  if (waiting.empty()) return;
  flush();  // they may not have been sent yet
  net::writer frame;
  frame.fixed(wire::kind::recall);
  for (job* j : waiting) {
    j->recalled = true;
    frame.varint(j->id);
  }
  occupant_.send(frame);
}

// Ends a task that another thread has claimed, to cancel it.
void node_actor::end_cancelled(task_record& t) {
  give_up_promises(t);
  ++failure_epoch_;
  await_fulfilled(t);
  report_.done.push_back(&t);
}

bool node_actor::has_overdue(std::chrono::milliseconds since) const {
  const double ns = 1e6 * static_cast<double>(since.count());
  std::lock_guard hold(lock_);
  return jobs_.any([&](const job& j) {
    return !j.end && is_overdue(*j.task) && static_cast<double>(rt_.clock.ns_since(*j.task->extra->overdue)) >= ns;
  });
}

// Returns a task that was not claimed.
void node_actor::give_back(task_record& t) {
  give_up_promises(t);
  ++failure_epoch_;
  report_.returned.push_back(&t);
}

// Notes that a task which comes back is to go elsewhere. Placement notes it in the record, under its turn, where it may
// be looking at the task for its successors.
void node_actor::refuse(task_record& t, std::exception_ptr why) { report_.refusals.emplace_back(&t, std::move(why)); }

// Returns true if a task whose node has gone may be tried again, and counts the attempt. A task that was running on
// several nodes when they went may be what kills them. Thousands may be under way on each, so the nodes tell which have
// begun; but only for tasks that have seen a node go, because that costs a message.
bool node_actor::may_run_again(task_record& t, bool begun) {
  if (t.kernel->repeat == purity::once || is_graph_part(t) || is_overdue(t)) return false;
  if (t.extra->attempt.load(std::memory_order_relaxed) > 1 && !begun) return true;
  return t.extra->attempt.fetch_add(1, std::memory_order_relaxed) < attempts_max;
}

}  // namespace troupe::detail
