// What this file is for: ended bodies of a core group are reported; a thread gives back what it does not get to.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <span>

#include "actors/core_group/actor.hpp"
#include "actors/placement/placement.hpp"

namespace troupe::detail {

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
  const std::span all(back, self.batch.pop_all(back));
  const auto rest = std::remove(all.begin(), all.end(), awaited);
  queue_.put_back({all.begin(), rest});
  return rest != all.end();
}

// Offers nodes of recorded graphs that the thread holds to others: a thread that waits inside a body must keep none.
void group_actor::lay_out_hands(worker& self) {
  bool any = false;
  for (graph_run::hand* h = self.hands; h; h = h->outer) any = h->run->lay_out(*h) || any;
  if (any) wake(static_cast<std::size_t>(options_.facts.slots), parking::nearness::far);
}

}  // namespace troupe::detail
