// What this file is for: entries for tasks are taken, and kept for later ones.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_service/remote_tasks.hpp"

namespace troupe::detail {

remote_task& remote_tasks::add(std::uint64_t id) {
  newest_ = std::max(newest_, id);
  remote_task* t;
  if (idle_.empty()) {
    t = by_id_.emplace(id, std::make_unique<remote_task>()).first->second.get();
  } else {
    auto entry = std::move(idle_.back());
    idle_.pop_back();
    entry.key() = id;
    t = by_id_.insert(std::move(entry)).position->second.get();
  }
  t->id = id;
  return *t;
}

void remote_tasks::started(remote_task& t) {
  if (idle_records_.empty()) {
    by_task_.emplace(t.task, &t);
  } else {
    auto entry = std::move(idle_records_.back());
    idle_records_.pop_back();
    entry.key() = t.task;
    entry.mapped() = &t;
    by_task_.insert(std::move(entry));
  }
  if (stopped_early_.erase(t.id) != 0) t.stop.request_stop();
}

task_record* remote_tasks::ended(remote_task& t) {
  auto entry = by_task_.extract(t.task);
  if (idle_records_.size() < idle_max) idle_records_.push_back(std::move(entry));
  return std::exchange(t.task, nullptr);
}

void remote_tasks::note_refused(std::uint64_t id) {
  refused_.insert(id);
  if (refused_.size() <= refused_max) return;
  refused_before_ = *refused_.begin();
  refused_.erase(refused_.begin());
}

void remote_tasks::remove(remote_task& t) {
  auto entry = by_id_.extract(t.id);
  if (idle_.size() == idle_max || t.stop.stop_requested()) return;
  t.task = nullptr;
  t.returns.clear();
  t.arrays.clear();
  t.recalled = false;
  t.on_their_way = 0;
  t.group = 0;
  t.untold.reset();
  idle_.push_back(std::move(entry));
}

void remote_tasks::stop(std::uint64_t id) {
  if (remote_task* const t = find(id))
    t->stop.request_stop();
  else if (id > newest_ && stopped_early_.size() < early_max)
    stopped_early_.insert(id);
}

}  // namespace troupe::detail
