// What this file is for: the calls that are made after a turn.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/notifications.hpp"

#include <algorithm>

#include "actors/logic/data/array_core.hpp"
#include "actors/protocol/executor.hpp"

namespace troupe::detail {

void notifications::add(executor& e) {
  if (!e.wants_after_turn() || noted_.contains(e.facts().id)) return;
  noted_.insert(e.facts().id);
  executors_.push_back(&e);
}

void notifications::add(task_listener& l) {
  if (std::ranges::find(listeners_, &l) == listeners_.end()) listeners_.push_back(&l);
}

void notifications::calls::make() const {
  for (const auto& [e, t] : saves_) e ? e->save(*t.array, t.number) : let_go(t.array);
  if (executor_) executor_->after_turn();
  if (listener_) listener_->after_turn();
  for (executor* e : executors_) e->after_turn();
  for (task_listener* l : listeners_) l->after_turn();
}

}  // namespace troupe::detail
