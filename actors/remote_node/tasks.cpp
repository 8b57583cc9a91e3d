// What this file is for: tasks on another node: sent in batches, in the order of their data; what happens when they end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>
#include <vector>

#include <troupe/error.hpp>

#include "actors/execution/reexecution.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/dependencies.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/protocol/behind.hpp"
#include "actors/remote_node/actor.hpp"

namespace troupe::detail {

namespace {

// Tasks that the other node has and has not told the end of, at most; or so many for each of its threads. Enough for links
// of a millisecond. With 8,192 what they take has left its caches before their turn comes: tiny tasks cost both nodes
// together a quarter to a third more.
constexpr std::size_t under_way_max = 1024, under_way_each = 32;
// With so many more under way than it has threads it does not run dry before it says something.
constexpr std::size_t plenty = 64;
// Then tasks go so many at a time: a frame and a call of the system for each would cost more than the tasks.
constexpr std::size_t gathered_max = 32;
// While the peer has so much to take, nothing is added.
constexpr std::size_t unsent_bytes_max = 16u << 20;
// A task is given up when so many nodes have gone that had it; from the second on those count only on which it had begun.
constexpr int attempts_max = 3;

}  // namespace

// ---- sending --------------------------------------------------------------------------------------------------------

void node_actor::send_some() {
  if (!session_) {
    if (arrays_.empty()) turn_away();  // else what was there is still being accounted for
    return;
  }
  for (;;) {
    task_record* t = nullptr;
    {
      std::lock_guard hold(queue_lock_);
      if (!errands_.empty()) {
        t = errands_.front();
        errands_.pop_front();
      } else if (!queue_.empty() &&
                 under_way_ < std::max(under_way_max, under_way_each * static_cast<std::size_t>(slots_))) {
        t = queue_.front();
        queue_.pop_front();
      }
      queued_count_.store(queue_.size() + errands_.size(), std::memory_order_relaxed);
    }
    if (!t) break;
    if (!is_internal(t->kind)) {
      start_task(*t);
    } else {
      flush();  // what it asks for comes after what has been sent before
      if (!start_errand(*t)) put_off_.push_back(t);
    }
    if (new_tasks_.size() + new_arrays_.size() < frame_bytes) continue;
    flush();
    if (session_->unsent() > unsent_bytes_max) return send_soon();
  }
  flush();
  try_waiting_lends();
}

// What is queued may wait for more: until there is a batch, until something comes from there, or a moment.
bool node_actor::may_gather() {
  if (!session_ || under_way_ < static_cast<std::size_t>(slots_) + plenty) return false;
  {
    std::lock_guard hold(queue_lock_);
    if (!errands_.empty() || queue_.size() >= gathered_max) return false;
    if (queue_.empty()) return true;
  }
  send_soon();
  return true;
}

void node_actor::send_soon() {
  if (std::exchange(gathers_, true)) return;
  soon_([this] {
    std::unique_lock hold(lock_);
    gathers_ = false;
    send_some();
    tell(hold);
  });
}

// There is nobody there: tasks that have waited for their data since before it went run elsewhere.
void node_actor::turn_away() {
  std::deque<task_record*> queue, errands;
  {
    std::lock_guard hold(queue_lock_);
    queue.swap(queue_);
    errands.swap(errands_);
    queued_count_.store(0, std::memory_order_relaxed);
  }
  for (task_record* t : queue) give_back(*t);
  const auto why = std::make_exception_ptr(error(errc::node_lost, "it is gone"));
  for (task_record* t : errands) {
    claim(*t);
    end_errand(*t, t->kind == task_kind::forget ? nullptr : lost_with(*t, why));
  }
}

void node_actor::flush() {
  if (task_count_ == 0 && array_count_ == 0) return;
  net::writer frame;
  frame.fixed(wire::kind::tasks);
  frame.varint(array_count_);
  frame.raw(new_arrays_.view().data(), new_arrays_.size());
  frame.varint(task_count_);
  frame.raw(new_tasks_.view().data(), new_tasks_.size());
  new_arrays_.clear();
  new_tasks_.clear();
  array_count_ = task_count_ = 0;
  session_->send(frame.view());  // if it has ended, we shall be told
}

void node_actor::start_task(task_record& t) {
  const std::uint32_t phase = t.phase.load(std::memory_order_acquire);
  if ((phase & phase_mask) != phase_waiting) return end_cancelled(t);
  // One that was sent ahead of its time, and what it comes after may not have been run well.
  if (is_behind(phase) && behind_of(phase) != behind_mark(setbacks_)) return give_back(t);
  if (!find_lenders(t)) {
    t.extra->no_pulls = true;
    return give_back(t);
  }
  if (!claim(t)) return end_cancelled(t);
  if (is_behind(phase)) counts_.behind.fetch_add(1, std::memory_order_relaxed);
  job& j = take_job(t);
  const auto undo = [&] {
    if (j.data) j.data->context.roll_back();
    take_back_lends(j);
    drop_pushes(j.id);
    give_job(j);
    forget_read(t);  // what was not there was to be asked for by this task
    ++setbacks_;
  };
  try {
    encode(j);
    if (!is_repeatable(t)) ask_for_written(j);
  } catch (const too_much&) {
    const std::exception_ptr why = std::current_exception();
    undo();
    refuse(t, task_error(t, peer_name(), 0, why, failure_code(why)));
    t.phase.fetch_and(~(phase_mask | behind_mask), std::memory_order_acq_rel);  // waiting again
    returned_.push_back(&t);
  } catch (...) {
    const std::exception_ptr why = std::current_exception();
    undo();
    counts_.tasks.fetch_add(1, std::memory_order_relaxed);  // an attempt, as on a core that has no memory for its views
    counts_.failed.fetch_add(1, std::memory_order_relaxed);
    end_task(t, task_error(t, peer_name(), 1, why, failure_code(why)), 0);
  }
}

// ---- the end of tasks -----------------------------------------------------------------------------------------------

void node_actor::finish(job& j, const wire::task_end& e) {
  if (is_internal(j.task->kind)) throw error(errc::bad_frame, "the end of a task that is none");
  if (j.is_touched() || (e.how == wire::outcome::ran && j.is_awaited())) {
    // Its memory is being written here, or read, or what it wrote for us is still on its way.
    j.end = e;
    return;
  }
  task_record& t = *j.task;
  std::exception_ptr why;
  if (e.how != wire::outcome::ran) {
    why = task_error(t, session_->peer().name, e.attempts, std::make_exception_ptr(error(e.code, e.text)),
                     lacks_room(t, e) && e.code != errc::unreachable ? e.code : errc::task_failed);
    if (e.code == errc::cancelled) why = stopped_error(t, session_->peer().name);
  }
  if (j.data) {
    try {
      if (why) {
        j.data->context.roll_back();
      } else {
        for (back& b : j.data->to) {
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
  if (why) take_back_lends(j);
  if (!why && !j.brought.empty() && t.extra && t.extra->call)
    static_cast<const repeatable_call*>(t.extra->call.get())->brought = std::move(j.brought);
  give_job(j);
  const bool no_room = why && lacks_room(t, e), unfilled = e.how == wire::outcome::unfilled;
  const bool comes_back = no_room || unfilled || e.how == wire::outcome::not_run;
  // Who is leaving runs nothing of what comes after it either.
  const bool touched = e.how != wire::outcome::not_run || e.code != errc::runtime_stopped;
  if (why) {
    ++setbacks_;
    note_not_written(j, t, touched, no_room || unfilled);
  }
  const bool overtaken = comes_back && touched && note_overtaken(j, t);
  if (no_room || overtaken) refuse(t, no_room || unfilled ? why : nullptr);
  if (comes_back) {
    t.phase.fetch_and(~(phase_mask | behind_mask), std::memory_order_acq_rel);  // waiting again
    returned_.push_back(&t);
    return;
  }
  end_task(t, why, e.measured_ns);
}

namespace {
int tries_max(const task_record& t) { return 1 + (t.extra ? std::max(0, t.extra->options.retries) : 0); }
}  // namespace

// At once, because the node may go before it tells the end.
void node_actor::count_tried(job& j) {
  if (is_internal(j.task->kind) || j.end || ++j.tried >= tries_max(*j.task))
    throw error(errc::bad_frame, "a task was tried again that had no attempt left");
  j.begun = true;  // the next one
  counts_.tasks.fetch_add(1, std::memory_order_relaxed);
  counts_.failed.fetch_add(1, std::memory_order_relaxed);
}

// What was told before is counted already.
void node_actor::count_bodies(const job& j, const wire::task_end& e) {
  const int threw = e.attempts - (e.how == wire::outcome::ran ? 1 : 0);
  if (e.attempts > tries_max(*j.task) || threw < j.tried)
    throw error(errc::bad_frame, "a task that ended after another number of attempts than it had");
  counts_.tasks.fetch_add(static_cast<std::uint64_t>(e.attempts - j.tried), std::memory_order_relaxed);
  counts_.failed.fetch_add(static_cast<std::uint64_t>(threw - j.tried), std::memory_order_relaxed);
}

// Its node has gone. What it had told counts already; of the rest a body that is known to have begun, or that the task ends
// with.
void node_actor::count_lost(const job& j, bool ends) {
  if (j.end || (!j.begun && !ends)) return;
  counts_.tasks.fetch_add(1, std::memory_order_relaxed);
  counts_.failed.fetch_add(1, std::memory_order_relaxed);
}

void node_actor::finish_awaited(job& j) {
  if (!j.end) return;
  const wire::task_end end = *j.end;
  finish(j, end);
}

// That node is short of memory or of disk: it is no fault of the task's, and others may have more.
bool node_actor::lacks_room(const task_record& t, const wire::task_end& e) {
  if (e.how == wire::outcome::no_room) return true;
  return e.how == wire::outcome::failed && (e.code == errc::out_of_memory || e.code == errc::disk_full) &&
         t.kernel->repeat != purity::once;
}

// To one of this node's own partials, which is nobody else's for the moment.
void node_actor::add_partial(job& j, const back& b) {
  const region& r = *j.task->accesses[b.access].where;
  const raw_view mine = j.data->context.view_of(b.access);
  std::size_t count = 1, there = 1;
  for (int d = 0; d < rank_max; ++d) {
    count *= static_cast<std::size_t>(b.to.hi[d] - b.to.lo[d]);
    there *= static_cast<std::size_t>(mine.hi[d] - mine.lo[d]);
  }
  if (count != there) throw error(errc::out_of_bounds, "a reduction of another size than its array");
  r.combiner(mine.data, b.partial.get(), count);
}

void node_actor::end_task(task_record& t, std::exception_ptr why, float measured_ns) {
  counts_.busy_ns.fetch_add(static_cast<std::uint64_t>(measured_ns), std::memory_order_relaxed);
  t.measured_ns = measured_ns;  // 0: it was too short to be timed there
  t.error = std::move(why);
  if (!t.body_gone) drop_body(t, peer_name());
  fulfil(t, board_);
  done_.push_back(&t);
}

void node_actor::end_errand(task_record& t, std::exception_ptr why) {
  t.error = std::move(why);
  fulfil(t, board_);
  done_.push_back(&t);
}

// The newest ones; as many as there are threads are left, which may have begun. What has, and what is being sent to it or
// from it, ends there as ever. A task that comes back spoils what was in the tiles that it writes: where they have nothing
// else of that, it would have to be made again.
void node_actor::recall(const std::function<bool(const task_record&)>& wanted) {
  std::lock_guard hold(lock_);
  if (!session_) return;
  std::vector<job*> waiting;
  for (job& j : jobs_)
    if (j.task && !j.recalled && !j.begun && !j.end && !would_spoil(j) && wanted(*j.task)) waiting.push_back(&j);
  if (under_way_ <= static_cast<std::size_t>(slots_)) return;
  const std::size_t most = std::min(under_way_ - static_cast<std::size_t>(slots_), wire::recalled_max);
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
  session_->send(frame.view());
}

// Somebody else has claimed it.
void node_actor::end_cancelled(task_record& t) {
  ++setbacks_;
  await_verdict(t);
  done_.push_back(&t);
}

bool node_actor::has_overdue(std::chrono::milliseconds since) const {
  const double ns = 1e6 * static_cast<double>(since.count());
  std::lock_guard hold(lock_);
  return std::ranges::any_of(jobs_, [&](const job& j) {
    return j.task && is_overdue(*j.task) && static_cast<double>(link_.clock.ns_since(*j.task->extra->overdue)) >= ns;
  });
}

// Placement decides anew.
void node_actor::give_back(task_record& t) {
  ++setbacks_;
  returned_.push_back(&t);
}

// It comes back and is to go elsewhere. Noted where placement has the turn, which looks there for tasks that follow.
void node_actor::refuse(task_record& t, std::exception_ptr why) { refused_.emplace_back(&t, std::move(why)); }

// Whoever was running on several nodes when they went may be what kills them. Thousands may be under way on each of them,
// so it is asked for who has begun; but of those only that have seen a node go, because it costs a message.
bool node_actor::may_run_again(task_record& t, bool begun) {
  if (t.kernel->repeat == purity::once || is_overdue(t)) return false;
  if (t.extra->attempt.load(std::memory_order_relaxed) > 1 && !begun) return true;
  return t.extra->attempt.fetch_add(1, std::memory_order_relaxed) < attempts_max;
}

// ---- jobs -----------------------------------------------------------------------------------------------------------

node_actor::job& node_actor::take_job(task_record& t) {
  if (free_jobs_.empty()) {
    free_jobs_.push_back(static_cast<std::uint32_t>(jobs_.size()));
    jobs_.emplace_back();
  }
  const std::uint32_t at = free_jobs_.back();
  free_jobs_.pop_back();
  job& j = jobs_[at];
  j.id = (++generation_ << place_bits) | at;
  j.task = &t;
  ++under_way_;
  link_.on_nodes.fetch_add(1, std::memory_order_relaxed);
  return j;
}

node_actor::job* node_actor::find_job(std::uint64_t id) {
  const std::size_t at = id & no_job;
  return at < jobs_.size() && jobs_[at].task && jobs_[at].id == id ? &jobs_[at] : nullptr;
}

node_actor::job* node_actor::find_told_job(std::uint64_t id) {
  const std::uint64_t at = id & no_job, times = id >> place_bits;
  if (times == 0 || times > generation_ || (at != no_job && at >= jobs_.size()))
    throw error(errc::bad_frame, "something was said of a task or a transfer that was never asked for");
  return find_job(id);
}

void node_actor::give_job(job& j) {
  j.task = nullptr;
  j.data.reset();
  j.stop_watch.reset();
  j.lent.clear();
  j.end.reset();
  j.brought.clear();
  j.copies = j.writing = j.pushing = j.sending = 0;
  j.begun = j.recalled = false;
  j.tried = 0;
  free_jobs_.push_back(static_cast<std::uint32_t>(j.id & no_job));
  --under_way_;
  link_.on_nodes.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace troupe::detail
