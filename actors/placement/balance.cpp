// What this file is for: tasks that an executor has not started go elsewhere: to one that has run dry, or, once it is
// known to take much longer than was predicted, to the executor that will be done with it first.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Late binding keeps executors within a window of each other as long as predictions hold. This is for when they fail.
#include <algorithm>
#include <array>

#include "actors/placement/placement.hpp"
#include "actors/protocol/clock.hpp"

namespace troupe::detail {

namespace {
// Predicted work from which an idle executor takes half of another one's queue, and the most tasks moved at once.
constexpr float relief_ns = 5'000.0f;
constexpr std::size_t relief_max = 64;
}  // namespace

bool placement::is_work_elsewhere(const executor* idle) const {
  if (executors_.near().size() < 2 || idle->queued() != 0 || idle->facts().space != host_space) return false;
  const bool stale = is_stale(clock_.ticks());  // then its own threads do not come for it: some body takes long
  for (const executor* e : executors_.near())
    if (e != idle && e->facts().space == host_space && (e->queued_ns() >= relief_ns || (stale && e->has_movable())))
      return true;
  return false;
}

bool placement::have_others_work(const executor* idle) const {
  return std::ranges::any_of(executors_.near(), [&](const executor* e) {
    return e != idle && e->facts().space == host_space && e->has_movable();
  });
}

void placement::relieve_others(executor& idle) {
  const std::size_t to = idle.facts().id;
  if (idle.facts().space != host_space) return;
  if (idle.queued() != 0 || !assignment_.outgoing(to).empty() || assignment_.kept() != 0) return;
  for (executor* e : executors_.near()) {
    if (e == &idle || e->facts().space != host_space) continue;
    if (e->queued_ns() < relief_ns && !(turns_.was_stale() && e->has_movable())) continue;
    std::array<task_record*, relief_max> back;
    const std::size_t half = std::min((e->unstarted() + 1) / 2, back.size());
    const std::size_t n =
        e->take_back(std::span(back.data(), half), [&](const task_record& t) { return assignment_.suits(t, to); });
    notifications_.add(*e);
    for (std::size_t i = n; i != 0; --i) assignment_.move(*back[i - 1], to);
    if (n != 0) return;
  }
}

// True if a task that has not begun may move to another executor: it is in no chain, whose tasks were sent behind one
// another to this device only.
bool placement::may_go_elsewhere(const task_record& t) {
  if (t.kind != task_kind::call || (t.marks & mark_chained) || !assignment_.has_choice(t)) return false;
  return chains_.leads_nobody(const_cast<task_record&>(t));
}

void placement::place_anew() {
  assignment_.each_surprise([&](std::size_t i) {
    std::array<task_record*, relief_max> back;
    const auto wanted = [&](const task_record& t) { return may_go_elsewhere(t); };
    const std::size_t n = executors_[i].take_back(back, wanted);
    notifications_.add(executors_[i]);
    executors_[i].recall([&](const task_record& t) {
      if (!may_go_elsewhere(t)) return false;
      chains_.lead_no_more(const_cast<task_record&>(t));
      return true;
    });
    for (std::size_t k = n; k != 0; --k) place_again(*back[k - 1], false);  // the newest come first
  });
}

}  // namespace troupe::detail
