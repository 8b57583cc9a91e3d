// What this file is for: what a thread of a core group does next: batches, stealing, recorded graphs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "actors/core_group/actor.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/phase.hpp"
#include "actors/protocol/prefetch.hpp"
#include "actors/protocol/successors.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

namespace {
constexpr std::size_t record_lines = sizeof(task_record) / 64;

// True if the task was neither cancelled nor has another one's failure reached it.
bool is_waiting(const task_record& t) {
  return (t.phase.load(std::memory_order_acquire) & phase_mask) == phase_waiting;
}
}  // namespace

// Sees to it that a sleeper comes for what a thread cannot begin yet, of tasks that it has taken and of those that are
// left: now and then, or at once if such work has been there for long.
void group_actor::leave_to_others(worker& self, const task_queue::sums& taken) {
  if (parking_.sleepers() == 0) return;
  parking_.keep_watch();
  if (lookers_.load(std::memory_order_relaxed) > 0 || placement_.active() >= usable_cores_) return;
  const float others = taken.beside_ns + queue_.stealable_ns();
  const float kept = queue_.moves_cost() ? std::min(taken.ns, others) : others;
  const auto busy = static_cast<double>(self.counts().busy_ticks.load(std::memory_order_relaxed));
  const auto wake_up = static_cast<double>(parking_.wake_up());
  if (self.unshared.add(static_cast<double>(kept) / tick_ns_, wake_up, busy)) wake(1, parking::nearness::far);
}

// True if the tasks that a thread has taken take far longer than predicted: it is to report those that have ended, so
// that this is known, here and to the owner of a task from another node. The shortest are mostly not timed; the clock
// is looked at after the first and the second of several, and after each four.
bool group_actor::takes_long(const task_record& t, const task_queue::share& mine) const {
  if (t.measured_ns > task_queue::batch_ns) return true;
  if (mine.tasks == 1 || (mine.begun > 2 && mine.begun % 4 != 0)) return false;
  return static_cast<double>(ticks() - mine.since) * tick_ns_ > 2.0 * task_queue::batch_ns;
}

// Releases the early successors of a task that has just ended well. Those that are ready now are queued, or kept by the
// thread; not if the end of the task is waited for by more than these, as it reports the end only after all that it has
// kept, and not if one of them has a priority, as the queue sorts them.
void group_actor::release_successors(worker& self, task_record& t, task_queue::share& mine) {
  if (!placement_.releases_early(t)) {
    mine.open = false;
    return;
  }
  task_record *ready[task_queue::batch_max], *elsewhere[task_queue::batch_max];
  std::size_t n = 0, queued = 0, others_have = 0;
  bool sorted = true;
  const auto queue = [&](std::size_t from) {
    if (from == n) return;
    if (placement_.releases_early()) {
      sorted ? queue_.push_own({ready + from, n - from}, self.queue_lane()) : queue_.push({ready + from, n - from});
      queued += n - from;
    } else {  // the runtime has begun to end
      placement_.report_ready({ready + from, n - from});
    }
  };
  const auto hand_on = [&] { placement_.run_released({elsewhere, std::exchange(others_have, 0)}); };
  placement_.note_ended(t);
  task_record *join = nullptr, *gate = nullptr;  // a chunk has one join
  const auto take = [&](task_record& next) {
    if (next.kind == task_kind::join) {
      join = &next;
      return;
    }
    if (!is_waiting(next) || !placement_.keeps_predicted(next)) {
      task_record* const one = &next;  // it will not run, or nobody but a turn knows how long it takes
      placement_.report_ready({&one, 1});
      return;
    }
    if (next.executor != options_.facts.id) {
      if (others_have == task_queue::batch_max) hand_on();
      elsewhere[others_have++] = &next;
      return;
    }
    if (n == task_queue::batch_max) {
      queue(0);
      n = 0;
    }
    sorted = sorted && task_queue::priority_of(next) == 0;
    ready[n++] = &next;
  };
  const bool others = release_early(t, [&](task_record& next) {
    if (next.kind != task_kind::gate) return take(next);
    if (!is_waiting(next)) {  // a task before it has failed
      task_record* const one = &next;
      return placement_.report_ready({&one, 1});
    }
    release_early(next, take);
    if (placement_.pass_gate(next)) return;
    if (gate) placement_.report_done({&gate, 1}, nullptr);
    gate = &next;
  });
  if (others) mine.open = false;
  std::size_t kept = 0;
  const bool may_keep = sorted && (task_queue::priority_of(t) >= 0 || self.batch.size() == 0);  // not behind late ones
  while (kept < n && may_keep && !parking_.slot_wanted() && placement_.releases_early() &&
         queue_.is_to_keep(mine, self.batch.size())) {
    prefetch<record_lines>(ready[kept]);
    mine.add(ready[kept]->predicted_ns);
    self.batch.push(ready[kept++]);
  }
  queue(kept);
  if (queued != 0) {
    call_threads(queued, attention::caller);
    wake_owed();
  }
  if ((kept != 0 || queued != 0) && (self.batch.size() > 1 || !queue_.empty()))
    leave_to_others(self, mine.ahead(self.batch.size()));
  if (others_have != 0) hand_on();
  // Last: the turns that this takes may be long, and others can have what is ready.
  if (join) placement_.report_ready({&join, 1});
  if (gate) placement_.report_done({&gate, 1}, nullptr);
}

// Runs one of the tasks that a thread has taken together, and releases what it can of those after it.
void group_actor::run_of_share(worker& self, task_record& t, task_queue::share& mine) {
  self.search.ran_graph = false;  // a run of one says so when it has ended
  // Prefetches the record that it makes ready, most likely, while the body runs. Not where there are many: they may all
  // wait for the same tasks, whose threads would take the record from each other.
  const std::uint32_t next = t.successor_count.load(std::memory_order_acquire) & ~shared_bit;
  if (next != 0 && next <= successors_inside) prefetch<record_lines>(successor::from(t.successors[0]).task);
  const bool fine = self.run(t);
  ++mine.begun;
  if (mine.open && takes_long(t, mine)) {
    mine.open = false;
    mine.has_surprised =
        self.compare(mine.ns - mine.ahead_ns, static_cast<float>(ticks() - mine.since) * static_cast<float>(tick_ns_));
  }
  if (fine && is_shared(t))
    release_successors(self, t, mine);
  else if (!fine || successors_added(t) != 0)
    mine.open = false;  // they wait until the end is reported
}

// Finds out, now and then, whether tiny tasks end sooner if threads share them.
void group_actor::try_sharing(worker& self) {
  const std::uint64_t own = self.counts().tasks.load(std::memory_order_relaxed);
  if (own - self.counted < tasks_between_counts || options_.facts.slots == 1) return;
  self.counted = own;
  std::unique_lock hold(trial_lock_, std::try_to_lock);
  if (!hold) return;
  logic::sharing_trial::moment all{.now = ticks(), .pauses = pauses_.load(std::memory_order_relaxed)};
  const bool complete = threads_.try_each([&](const worker& w) {
    all.tasks += w.counts().tasks.load(std::memory_order_relaxed);
    all.bodies += w.counts().busy_ticks.load(std::memory_order_relaxed);
  });
  if (!complete) return;
  queue_.set_moves_cost(!trial_.note(all));
  if (trial_.are_tiny() != are_tiny_.load(std::memory_order_relaxed)) are_tiny_ = trial_.are_tiny();
}

// Returns the lane that a thread looks at next: its own, but each fourth time, and after 80 us at the latest, another
// one: tasks that wait there must not be held up by what the thread itself makes ready.
lane_preference group_actor::next_lane(worker& self) const {
  worker::lane_choice& c = self.lanes;
  const std::uint64_t now = ticks();
  const bool is_own =
      ++c.visits % visits_to_own != 0 && static_cast<double>(now - c.other_last) * tick_ns_ < task_queue::batch_ns;
  if (!is_own) {
    ++c.to_others;
    c.other_last = now;
  }
  return {.own = self.queue_lane(), .is_own = is_own, .turn = c.to_others};
}

bool group_actor::work_once(worker& self) {
  task_record* got[task_queue::batch_max];
  task_queue::sums taken;
  if (const std::size_t n = queue_.take_batch(got, &taken, next_lane(self))) {
    found_work(self);
    // Steps of longer tasks do not wait for the next count to have all threads look again.
    const bool are_longer = taken.ns >= static_cast<float>(n) * static_cast<float>(tiny.count());
    if (are_longer && are_tiny_.load(std::memory_order_relaxed)) are_tiny_ = false;
    if (self.network.polls) outside_.begins(self.network, n, got[0]->predicted_ns, moment_ns(), ticks());
    if (taken.movable != self.is_batch_movable.load(std::memory_order_relaxed)) self.is_batch_movable = taken.movable;
    for (std::size_t i = 1; i < n; ++i) self.batch.push(got[i]);
    if (n > 1 || !queue_.empty()) leave_to_others(self, taken);
    // Prefetches the next record while a body runs: another core filled it in.
    const auto fetch = [&](std::size_t i) {
      if (i < n) prefetch<record_lines>(got[i]);
    };
    fetch(1);
    const std::uint64_t begin = ticks();
    task_queue::share mine{.tasks = n,
                           .ns = taken.ns,
                           .ahead_ns = taken.ns - taken.first_ns,
                           .worth_ns = taken.beside_ns,
                           .since = begin,
                           .moves_cost = taken.moves_cost};
    const auto compare = [&] {
      if (!mine.has_surprised)
        (void)self.compare(mine.ns, static_cast<float>(ticks() - begin) * static_cast<float>(tick_ns_));
    };
    run_of_share(self, *got[0], mine);
    move_stuck(self);
    if (n == 1 && self.batch.empty()) {
      placement_.report_done({got, 1}, this);
      compare();
      try_sharing(self);
      return true;
    }
    self.done.push(got[0]);
    std::size_t i = 1;
    for (std::uint64_t reported = begin;;) {
      // Tasks that wait for the report of an end must not wait for those that take longer than predicted, too.
      if (!mine.open && static_cast<double>(ticks() - reported) * tick_ns_ > task_queue::batch_ns) {
        report_done(self, nullptr);
        reported = ticks();
      }
      task_record* const t = self.batch.pop();
      if (!t) break;
      fetch(++i);
      if (queue_.is_overtaken(*t)) {  // by one that has come since these were taken
        mine.ns -= mine.ahead_ns;
        return_batch(self, nullptr);
        queue_.put_back({&t, 1});
        break;
      }
      mine.begins(t->predicted_ns, self.batch.size());
      run_of_share(self, *t, mine);
      self.done.push(t);
    }
    report_done(self, this);
    compare();
    try_sharing(self);
    return true;
  }
  if (placement_.take_turn(this)) {
    found_work(self);
    return true;
  }
  return runs_.any(options_.facts.id) && join_graph(self);
}

// ---- beside those in line for slots ---------------------------------------------------------------------------------

// Runs a task that may pass the line for slots, or takes a turn if there is mail; false: there is neither.
bool group_actor::pass_line(worker& self) {
  be_awake(self, true);
  if (queue_.empty()) return placement_.take_turn(this);
  task_record* const t = passers_.choose(self, parking_, queue_, threads_);
  if (!t) return false;
  found_work(self);
  outside_.rest(self.network);
  if (!queue_.empty()) parking_.call_passer();
  try {
    run_and_report(self, *t, this);
  } catch (...) {
    passers_.ended(self);
    throw;
  }
  passers_.ended(self);
  return true;
}

// Takes one task that a sibling has not started, and reports those that it has finished and not reported: its current
// body takes longer than was predicted.
bool group_actor::steal(worker& self) {
  bool busy = false;
  const std::shared_ptr<worker> victim =
      threads_.try_find(busy, [&](const worker& w) { return &w != &self && !(w.batch.empty() && w.done.empty()); });
  if (busy) return true;  // look again before sleeping
  if (!victim) return false;
  found_work(self);
  outside_.rest(self.network);
  report_done(*victim, this);
  if (task_record* t = victim->batch.pop()) run_and_report(self, *t, this);
  return true;
}

bool group_actor::something_held() const {
  bool any = false;
  threads_.each_own([&](const worker& w) { any = any || !w.batch.empty() || !w.done.empty(); });
  return any;
}

}  // namespace troupe::detail
