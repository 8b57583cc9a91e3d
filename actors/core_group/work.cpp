// What this file is for: what a thread of a core group does next: batches, stealing, recorded graphs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>

#include "actors/core_group/actor.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/placement/placement.hpp"
#include "actors/protocol/prefetch.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

// ---- work -----------------------------------------------------------------------------------------------------------

bool group_actor::work_once(worker& self) {
  task_record* got[task_queue::batch_max];
  if (const std::size_t n = queue_.take_batch(got)) {
    found_work(self);
    if (self.network.polls) outside_.begins(self.network, n, got[0]->predicted_ns, ticks());
    if (n > 1 || queue_.size() != 0) parking_.keep_watch();
    for (std::size_t i = 1; i < n; ++i) self.batch.push(got[i]);
    // Prefetches the next record while a body runs: another core filled it in.
    const auto fetch = [&](std::size_t i) {
      if (i < n) prefetch<sizeof(task_record) / 64>(got[i]);
    };
    fetch(1);
    self.run(*got[0]);
    move_stuck(self);
    if (n == 1) {
      placement_.report_done({got, 1}, this);
      return true;
    }
    self.done.push(got[0]);
    std::size_t i = 1;
    while (task_record* t = self.batch.pop()) {
      fetch(++i);
      self.run(*t);
      self.done.push(t);
    }
    report_done(self, this);
    return true;
  }
  if (placement_.take_turn(this)) {
    found_work(self);
    return true;
  }
  return runs_.any(options_.facts.id) && join_graph(self);
}

// Moves threads of the group that are awake and wait for the core that this one computes on to another core: there is
// one if not more threads are awake than there are cores.
void group_actor::move_stuck(worker& self) {
  self.nodes_unminded = 0;
  const std::uint64_t now = ticks();
  if (now - self.minded < stuck_ticks_) return;
  self.minded = now;
  if (!may_move_ || placement_.active() > usable_cores_) return;
  const std::unique_lock look(threads_lock_, std::try_to_lock);
  if (!look) return;
  const int here = devices::current_cpu();
  const auto move = [&](const auto& w) {
    if (w.get() != &self && w->place.looks.is_stuck(now, stuck_ticks_, here) &&
        w->place.looks.begin_move(now, 20 * stuck_ticks_))
      devices::move_thread_from(here, w->system_thread.load(std::memory_order_relaxed));
  };
  std::ranges::for_each(threads_, move);
  std::ranges::for_each(helpers_, move);
}

// ---- beside those in line for slots ---------------------------------------------------------------------------------

// Runs a task that may pass the line for slots, or takes a turn if there is mail; false: there is neither.
bool group_actor::pass_line(worker& self) {
  be_awake(self, true);
  if (queue_.size() == 0) return placement_.take_turn(this);
  task_record* const t = choose_passer(self);
  if (!t) return false;
  found_work(self);
  outside_.rest(self.network);
  if (queue_.size() != 0) parking_.call_passer();
  try {
    run_and_report(self, *t, this);
  } catch (...) {
    end_passing(self);
    throw;
  }
  end_passing(self);
  return true;
}

void group_actor::end_passing(worker& self) {
  if (!std::exchange(self.passes, false)) return;
  std::lock_guard hold(passing_lock_);
  passing_.ended(&self);
}

// Chooses a task that may use the thread's slot while the line waits for more; null: none. The thread's own slot counts
// as one that has gathered.
task_record* group_actor::choose_passer(worker& self) {
  std::lock_guard hold(passing_lock_);
  const auto line = parking_.line();  // threads that have taken a gathered slot are known to passing_
  if (!line) return nullptr;
  const std::uint64_t now = ticks();
  const bool enough = line->free + 1 >= line->first.slots;
  if (!enough) look_at_slots(*line, now);
  const auto ticks_for = [&](float ns) { return ticks_of(std::chrono::nanoseconds(static_cast<std::int64_t>(ns))); };
  // Bodies that go on come before any task.
  const int above = line->first.is_task ? line->first.priority : std::numeric_limits<int>::max();
  task_record* const t =
      queue_.take_passing(above, [&](float ns) { return !enough && passing_.lets_pass(now, ticks_for(ns)); });
  if (t) {
    self.passes = true;
    passing_.passes(&self, now, ticks_for(t->predicted_ns));
  } else if (!enough) {
    const std::uint64_t later = passing_.look_at(now, ticks_of(unmeasured_pass)) - now;
    self.place.look_again = std::chrono::steady_clock::now() +
                            std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(later) * tick_ns_));
  }
  return t;
}

void group_actor::look_at_slots(const parking::line_state& line, std::uint64_t now) {
  seen_running_.clear();
  {
    std::lock_guard hold(threads_lock_);
    const auto add = [&](const auto& w) {
      const worker::holding& h = w->holds();
      const int slots = h.slots.load(std::memory_order_relaxed);
      const auto predicted = static_cast<std::int64_t>(h.predicted_ns.load(std::memory_order_relaxed));
      if (slots > 0)
        seen_running_.push_back(
            {w.get(), slots, h.since.load(std::memory_order_relaxed), ticks_of(std::chrono::nanoseconds(predicted))});
    };
    for (const auto& w : threads_) add(w);
    for (const auto& w : helpers_) add(w);
  }
  passing_.look(seen_running_, {line.first.who, line.first.slots, line.free + 1}, now);
}

// ---- ends and reports -----------------------------------------------------------------------------------------------

// Runs a task and reports it. `looks_next`: this group, if the thread holds a slot and looks for work next. Else what
// the report makes ready must be announced to other threads: one without a slot parks, one inside a body goes on with
// that or waits.
void group_actor::run_and_report(worker& self, task_record& t, executor* looks_next) {
  self.run(t);
  task_record* done = &t;
  placement_.report_done({&done, 1}, looks_next);
}

void group_actor::report_last(worker& self, task_record& t) {
  return_batch(self, nullptr);
  lay_out_hands(self);
  report_done(self, nullptr);
  task_record* done = &t;
  placement_.report_done({&done, 1}, nullptr);
}

void group_actor::report_done(worker& self, executor* looks_next) {
  task_record* done[worker::ring::capacity];
  if (const std::size_t n = self.done.pop_all(done)) placement_.report_done({done, n}, looks_next);
}

// Puts the thread's batch back into the queue: a thread that waits inside a body must not keep tasks that others could
// run. True if the awaited task was among them: it stays with this thread.
bool group_actor::return_batch(worker& self, const task_record* awaited) {
  task_record* back[worker::ring::capacity];
  bool found = false;
  for (std::size_t i = self.batch.pop_all(back); i != 0; --i) {
    if (back[i - 1] == awaited)
      found = true;
    else
      queue_.put_back(*back[i - 1]);
  }
  return found;
}

// Takes one task that a sibling has not started, and reports those that it has finished and not reported: its current
// body takes longer than was predicted.
bool group_actor::steal(worker& self) {
  std::shared_ptr<worker> victim;
  {
    std::unique_lock look(threads_lock_, std::try_to_lock);
    if (!look) return true;  // look again before sleeping
    for (const auto& other : threads_) {
      if (other.get() == &self || (other->batch.empty() && other->done.empty())) continue;
      victim = other;
      break;
    }
  }
  if (!victim) return false;
  found_work(self);
  outside_.rest(self.network);
  report_done(*victim, this);
  if (task_record* t = victim->batch.pop()) run_and_report(self, *t, this);
  return true;
}

bool group_actor::something_held() const {
  std::lock_guard hold(threads_lock_);
  return std::any_of(threads_.begin(), threads_.end(),
                     [](const auto& t) { return !t->batch.empty() || !t->done.empty(); });
}

// ---- recorded graphs ------------------------------------------------------------------------------------------------

// Runs a recorded graph as the body of its task; threads that have nothing else to do join in, of this group and of the
// others in the run's scope.
std::exception_ptr group_actor::run_graph(worker& self, task_record& t) {
  auto graph = std::static_pointer_cast<recorded_graph>(t.extra->payload);
  // Threads whose bodies wait inside keep their hands: there are some for the spare ones.
  graph_run g(*graph, 2 * runs_.slots_of(t.extra->executors), &t);
  graph_run::hand& mine = g.take_hand();
  runs_.open(g, options_.facts.id, t.extra->executors);
  self.system_thread.store(devices::current_thread(), std::memory_order_relaxed);
  const auto slots = static_cast<std::size_t>(options_.facts.slots);
  wake(std::min(slots - 1, graph->roots.size()), parking::nearness::far);
  if (graph->roots.size() > slots) runs_.call_others(g, options_.facts.id, graph->roots.size() - slots);
  const auto finish = [&] {
    runs_.close(g);
    g.wait_for_helpers();
  };
  try {
    run_nodes(self, g, mine, true);
  } catch (...) {  // the thread ends
    finish();
    t.error = run_error(t, g.error);
    throw;
  }
  finish();
  return run_error(t, g.error);
}

// Takes part in a run that has nodes for others; false: there is none.
bool group_actor::join_graph(worker& self) {
  graph_run::hand* const mine = runs_.join(options_.facts.id);
  if (!mine) return false;
  graph_run* const g = mine->run;
  if (parking_.sleepers() == 0) runs_.call_others(*g, options_.facts.id, 1);
  found_work(self);
  outside_.rest(self.network);
  const auto leave = [&] {
    g->give_hand(*mine);
    g->leave();
  };
  try {
    run_nodes(self, *g, *mine, false);
  } catch (...) {
    leave();
    throw;
  }
  leave();
  return true;
}

// Wakes a thread for nodes that nobody comes for: one of this group, else of another one in the run's scope.
void group_actor::call_for_nodes(graph_run& g) {
  if (parking_.sleepers() != 0)
    wake(1, parking::nearness::far);
  else
    runs_.call_others(g, options_.facts.id, 1);
}

// Waits for nodes that other threads have, without a slot: they may be waiting for this thread's.
void group_actor::await_nodes(worker& self, graph_run& g) {
  leave_slots(self);
  if (!g.has_shared()) g.await_more();
  come_back(self);
}

// Ends a thread's part in a graph's run after a body has ended the thread: the owner of the run stays until it is over,
// threads that joined leave the rest to others.
void group_actor::finish_run(worker& self, graph_run& g, graph_run::hand& mine, bool owner) {
  if (!owner) {
    lay_out_hands(self);
    return;
  }
  for (std::uint32_t node; !g.is_over();)
    if (g.next(mine, node, run_patience()))
      g.finished(mine, node, self.run_node(g, node), wake_ticks_);
    else if (!g.is_over())
      await_nodes(self, g);
}

void group_actor::run_nodes(worker& self, graph_run& g, graph_run::hand& mine, bool owner) {
  mine.outer = std::exchange(self.hands, &mine);
  mine.looks = &self.place.looks;
  for (std::uint32_t node;;) {
    if (g.next(mine, node, run_patience())) {
      bool fine = false;
      try {
        fine = self.run_node(g, node);
      } catch (...) {  // the thread ends, but the nodes that it has taken are no other thread's
        g.finished(mine, node, false, wake_ticks_);
        finish_run(self, g, mine, owner);
        self.hands = mine.outer;
        throw;
      }
      if (g.finished(mine, node, fine, wake_ticks_) == graph_run::outlook::nodes_for_others) call_for_nodes(g);
      if (g.is_awaited() || ++self.nodes_unminded >= nodes_between_looks) move_stuck(self);
      if (!parking_.slot_wanted()) continue;
      // A body that has waited goes on first, as between plain tasks.
      g.lay_out(mine);
      if (!owner) break;
    } else if (!owner || g.is_over()) {
      break;
    }
    if (g.is_over()) break;
    await_nodes(self, g);
  }
  self.hands = mine.outer;
}

// Offers nodes of recorded graphs that the thread holds to others: a thread that waits inside a body must keep none.
void group_actor::lay_out_hands(worker& self) {
  bool any = false;
  for (graph_run::hand* h = self.hands; h; h = h->outer) any = h->run->lay_out(*h) || any;
  if (any) wake(static_cast<std::size_t>(options_.facts.slots), parking::nearness::far);
}

}  // namespace troupe::detail
