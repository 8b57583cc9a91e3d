// What this file is for: the uses of each tile, in order of turns.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/lookahead_queue.hpp"

#include <algorithm>

#include "actors/logic/data/directory.hpp"

namespace troupe::logic {

using detail::task_record;

namespace {
int priority_of(const task_record& t) { return t.extra ? t.extra->options.priority : 0; }
}  // namespace

// Calls f(tile) for each use; a tile that several accesses touch is passed several times.
template <class F>
void lookahead_queue::each_use(const task_record& t, F&& f) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || !uses_copies(x)) continue;
    each_tile_of(x, [&](std::uint32_t index) { f(tile{x.array->id, index}); });
  }
}

void lookahead_queue::push(task_record* t, int priority) {
  if (ahead_)
    insert(*t, priority);
  else
    plain_.push(t, priority);
}

void lookahead_queue::push_front(task_record* t, int priority) {
  if (!ahead_) {
    plain_.push_front(t, priority);
    return;
  }
  const turn mine{-priority, t->sequence};
  if (popped_ == mine) forget_popped();
  insert(*t, priority);
}

task_record* lookahead_queue::pop() {
  if (!ahead_) return plain_.pop();
  forget_popped();
  if (ordered_.empty()) return nullptr;
  const auto first = ordered_.begin();
  task_record* const t = first->second;
  popped_ = first->first;
  each_use(*t, [&](const tile& x) { popped_uses_.push_back(x); });
  ordered_.erase(first);
  return t;
}

void lookahead_queue::look_ahead() {
  if (ahead_) return;
  ahead_ = true;
  while (task_record* t = plain_.pop()) insert(*t, priority_of(*t));
}

void lookahead_queue::rest() {
  forget_popped();
  ahead_ = false;
}

void lookahead_queue::insert(task_record& t, int priority) {
  const turn mine{-priority, t.sequence};
  ordered_.emplace_hint(ordered_.end(), mine, &t);
  each_use(t, [&](const tile& x) { add_use(x, mine); });
}

void lookahead_queue::forget_uses(const task_record& t, const turn& mine) {
  each_use(t, [&](const tile& x) { remove_use(x, mine); });
}

void lookahead_queue::forget_popped() {
  for (const tile& x : popped_uses_) remove_use(x, popped_);
  popped_uses_.clear();
  popped_ = {};
}

// Inserts a turn in order; most come last, or are put back as the first.
void lookahead_queue::add_use(const tile& x, const turn& t) {
  users& u = uses_[x];
  if (u.turns.empty() || u.turns.back() <= t)
    u.turns.push_back(t);
  else if (u.first != 0 && t <= u.turns[u.first])
    u.turns[--u.first] = t;
  else
    u.turns.insert(std::upper_bound(u.turns.begin() + static_cast<std::ptrdiff_t>(u.first), u.turns.end(), t), t);
}

void lookahead_queue::remove_use(const tile& x, const turn& t) {
  const auto found = uses_.find(x);
  if (found == uses_.end()) return;
  users& u = found->second;
  const auto begin = u.turns.begin() + static_cast<std::ptrdiff_t>(u.first);
  const auto at = std::lower_bound(begin, u.turns.end(), t);
  if (at == u.turns.end() || *at != t) return;
  if (at == begin)
    ++u.first;
  else
    u.turns.erase(at);
  if (u.first == u.turns.size()) {
    uses_.erase(found);
  } else if (u.first > 32 && 2 * u.first > u.turns.size()) {
    u.turns.erase(u.turns.begin(), u.turns.begin() + static_cast<std::ptrdiff_t>(u.first));
    u.first = 0;
  }
}

}  // namespace troupe::logic
