// What this file is for: when a run over several nodes is released, and when each node is given its part.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/gangs.hpp"

#include <algorithm>
#include <atomic>

namespace troupe::detail {

run_gang::member& gangs::of(const task_record& t) {
  return *std::ranges::find(t.extra->gang->members, &t, &run_gang::member::task);
}

std::deque<task_record*>& gangs::line(std::uint16_t node) {
  if (node >= lines_.size()) lines_.resize(node + std::size_t{1});
  return lines_[node];
}

void gangs::part_ordered(task_record& t, std::span<const logic::task_graph::edge> found) {
  run_gang::member& m = of(t);
  m.before = static_cast<std::uint32_t>(std::ranges::count_if(found, [&](const logic::task_graph::edge& e) {
    // Early tasks are not looked at, which others may retire meanwhile.
    return e.to == &t && !(e.from->marks & mark_early) && is_part(*e.from) && is_released(*e.from);
  }));
  m.is_ordered = true;
  clear_if(*t.extra->gang, m, t.pending.load(std::memory_order_relaxed) - 1);
}

// Counts a part that waits for nothing but released runs; `pending`: for how many it waits.
void gangs::clear_if(run_gang& g, run_gang::member& m, std::int32_t pending) {
  if (m.is_clear || !m.is_ordered || pending != static_cast<std::int32_t>(m.before)) return;
  m.is_clear = true;
  if (++g.clear == g.members.size()) release(g);
}

// Releases a run, and those that waited for nothing else.
void gangs::release(run_gang& first) {
  clearing_.push_back(&first);
  if (clearing_.size() > 1) return;  // the loop below comes to it
  for (std::size_t i = 0; i < clearing_.size(); ++i) {
    run_gang& g = *clearing_[i];
    g.number = ++released_;
    for (run_gang::member& m : g.members) {
      if (!m.task) continue;
      if (m.node != run_gang::no_node) {
        line(m.node).push_back(m.task);
        if (m.node != run_gang::here_in_order) ++in_lines_;
      }
      if (m.node == run_gang::no_node ? m.waits : is_next(m)) is_due(*m.task);
      graph_.each_successor(*m.task, [&](task_record& next, bool) {
        if (!is_part(next)) return;
        run_gang::member& n = of(next);
        ++n.before;
        clear_if(*next.extra->gang, n, next.pending.load(std::memory_order_relaxed));
      });
    }
  }
  clearing_.clear();
}

// True if the part of a released run is the next one that its node is given, or has been given.
bool gangs::is_next(const run_gang::member& m) const {
  return m.node == run_gang::no_node || m.is_given || lines_[m.node].front() == m.task;
}

bool gangs::part_may_go(task_record& t, bool is_ready) {
  run_gang::member& m = of(t);
  if (is_released(t) && is_next(m)) return true;
  if (!is_ready) return false;
  if (!m.waits) kept_.push_back(&t);
  m.waits = true;
  // All that it waited for has ended; that of some was not told, which ended without a turn.
  clear_if(*t.extra->gang, m, static_cast<std::int32_t>(m.before));
  return false;
}

gangs::due gangs::take_due() {
  task_record* const t = due_.front();
  due_.pop_front();
  run_gang::member& m = of(*t);
  if (!m.waits) return {t, false};
  m.waits = false;
  std::erase(kept_, t);
  return {t, true};
}

void gangs::is_due(task_record& t) {
  if (std::ranges::find(due_, &t) == due_.end()) due_.push_back(&t);
}

// Takes a part out of the line of its node; the next one in it is due.
void gangs::leave_line(run_gang::member& m) {
  if (m.node == run_gang::no_node || m.node >= lines_.size()) return;
  std::deque<task_record*>& l = lines_[m.node];
  const auto at = std::ranges::find(l, m.task);
  if (at == l.end()) return;
  const bool was_first = at == l.begin();
  l.erase(at);
  if (m.node != run_gang::here_in_order) --in_lines_;
  if (was_first && !l.empty()) is_due(*l.front());
}

void gangs::part_given(task_record& t) {
  run_gang::member& m = of(t);
  m.is_given = true;
  leave_line(m);
}

// The part gets its place again, before those of runs that were released later.
void gangs::part_came_back(task_record& t) {
  run_gang::member& m = of(t);
  if (!m.is_given || m.node == run_gang::no_node) return;
  m.is_given = false;
  std::deque<task_record*>& l = line(m.node);
  const std::uint64_t number = t.extra->gang->number;
  l.insert(std::ranges::find_if(l, [&](const task_record* o) { return o->extra->gang->number > number; }), &t);
  if (m.node != run_gang::here_in_order) ++in_lines_;
}

// A run that has not been released waits for what its parts wait for, but for runs that have been.
void gangs::add_kept_behind(const task_record& before, const task_record& t, std::vector<task_record*>& to) const {
  if (!is_part(t)) return;
  if (&before != &t) {
    if (is_released(t) || (is_part(before) && is_released(before))) return;
    for (const run_gang::member& m : t.extra->gang->members)
      if (m.task && m.task != &t) to.push_back(m.task);
    return;
  }
  const run_gang::member& m = of(t);
  if (!is_released(t) || m.node == run_gang::no_node || m.is_given) return;
  const std::deque<task_record*>& l = lines_[m.node];
  if (const auto at = std::ranges::find(l, &t); at != l.end() && at + 1 != l.end()) to.push_back(at[1]);
}

void gangs::part_waits_for_fewer(task_record& t) {
  clear_if(*t.extra->gang, of(t), t.pending.load(std::memory_order_relaxed));
}

void gangs::part_retires(task_record& t) {
  run_gang& g = *t.extra->gang;
  if (g.is_released())
    graph_.each_successor(t, [&](task_record& next, bool) {
      if (is_part(next)) --of(next).before;
    });
  run_gang::member& m = of(t);
  leave_line(m);
  std::erase(due_, &t);
  if (m.waits) std::erase(kept_, &t);
  m.task = nullptr;
  if (m.is_clear) return;
  m.is_clear = true;
  if (++g.clear == g.members.size()) release(g);
}

}  // namespace troupe::detail
